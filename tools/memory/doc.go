// Package memory is what agents keep between conversations: Markdown files in
// .daycare/memory, which users read and edit too, and the tools memory_search,
// memory_get, memory_write and memory_list.
//
//	memory/daily/2026-11-20.md   notes of a day, one a line
//	memory/entities/anna.md      what is known of a user, a project, a thing
//	memory/anything/else.md
//
// # Search
//
// Files are cut into passages (a heading with what is below it, a paragraph, a run
// of list items), and passages are ranked by BM25 over their words. The index is
// in memory and made of the files: each search looks which of them changed and
// reads those, so an edit by hand counts at once and there is nothing to rebuild.
// A query is taken apart into words like any text. It has no syntax, so nothing in
// it can be anything but a word.
//
// The index is 200 lines here rather than an engine from elsewhere: the embedded
// ones keep segments on disk that would have to follow the files, and bring tens
// of modules for what is one formula over at most some ten thousand passages.
package memory
