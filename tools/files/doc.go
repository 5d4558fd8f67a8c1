// Package files gives agents hands on files: read, write, edit, apply_patch, ls,
// glob, grep.
//
// Every path is walked from an open permitted folder (os.Root), name by name, and
// every symbolic link is judged anew from the start, so there is no gap between
// check and use: a path that leads out, by whatever way, is refused, and so is
// what is out of reach whatever was granted (see forbidden). What is missing is
// refused with the tag to ask for.
package files
