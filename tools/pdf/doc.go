// Package pdf reads the text of PDF files, page by page, for the tools that show
// documents to models.
//
// # Hostile files
//
// A file comes from anywhere, so the work is bounded whatever it says: unpacked
// bytes, values read and letters shown each have a limit, nesting has a depth, and
// ctx is looked at on the way. A file beyond them is an error, or its text ends
// early and Next says so. The table of contents of a file (xref) is not
// trusted: objects are found by going through the file once, which also reads files
// that were cut or put together badly. Nothing in a file is ever run.
//
// # What it does not do
//
// Encrypted files, letters that are pictures (scans), and fonts that do not say
// which letters their glyphs are give no text. Text comes in the order in which the
// file draws it, which is nearly always the order in which it is read.
package pdf
