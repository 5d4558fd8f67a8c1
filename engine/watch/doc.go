// Package watch tells when something in a directory changed. It watches
// directories, never files: an atomic save replaces the file and would take a
// file watch with it.
//
// A Hint is no more than that: it says where to look, and who gets it reads
// the files again and compares. What a hint promises is the other direction: the
// last change to a watched directory is always followed by a hint, at most the
// debounce time later. Where the system cannot watch a directory (the limit is
// reached, the file system has no events, the directory is not there) that one
// directory is hinted by time instead, and Degraded says so. With every directory
// watched, a quiet Watcher uses no CPU at all.
//
// The loops of cmd/daycare, engine/config, engine/schedule and the agents' own
// folders are behind it; it is the only importer of fsnotify.
package watch
