// Package fit lays out help for the width of a terminal. Elsewhere, in a pipe or a file, help keeps its lines.
package fit
