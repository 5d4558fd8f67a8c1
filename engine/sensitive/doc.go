// Package sensitive says which files in the folders of a user are more than data:
// those that run something later, or tell a program of the user what to run, and
// those that hold secrets. The file tools, the sandbox of commands and doctor all go
// by these two tables.
//
// A right to a wider folder does not reach such a file. It needs a right of its own: one
// to the file itself, or to something on the way to it that is in the table. So a grant
// of a project lets an agent write everything in it but .vscode/tasks.json, and a grant
// of that file, which a user was asked for by its name, lets it write that.
package sensitive
