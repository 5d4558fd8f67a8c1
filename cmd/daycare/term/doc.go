// Package term is the terminal that commands have: streams, colours, tables, questions to a
// person, errors with their exit codes, and the way to the daemon of a workspace.
package term
