// Package changes carries changes of files into folders that agents and users write, too: what an
// agent did in a copy of its folder (a dry run), and what is taken back after a rewind.
//
// A Copy is a folder that an agent works in instead of another one:
//
//	copy.json     which folder was copied, when, for which agent
//	base.jsonl    each file as it was copied
//	base/         what the smaller texts among them held, by SHA-256, for merging
//	tree/         the copy itself: the agent's working folder
//	blobs/        what an apply writes and what it overwrites
//	apply.json    the apply in progress
//
// Carry carries out steps: each names a file, what must be there, and what is there afterwards.
// All contents, those that are overwritten included, are on disk before the first file changes,
// and so is the list of steps. A kill at any moment leaves each file whole, as it was or as it
// becomes; Resume goes on with the list. A file that is neither is left alone and reported.
package changes
