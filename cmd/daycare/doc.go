// Command daycare runs long-lived agents from a directory of plain files and is
// the command line to talk to them.
//
// Package main lists the commands (root.go) and starts the daemon in the foreground
// (startcmd.go) or the full-screen UI (tui.go). Everything else is in a package beside it,
// each with a tour of its own:
//
//	term      what all commands share: streams, tables, questions, exit codes, the way to a daemon
//	commands  the commands that look at a workspace and change it through the control API
//	talk      chat and send: what talks with an agent line by line
//	show      how records, requests and choices are put into words, for both
//	setup     init, auth, providers, models, connectors, service
//	doctor    doctor, validate, schema, gc: what is in the files, and what is wrong with it
//	lab       test, replay, batch and changes: tries agents out
//	daemon    builds and runs a workspace; knows no command line
//	chaos     kills the daemon in every way and compares files with the outside world
//	bench     measures
//
// plugins, models, logfile, version and follow are small packages that several of them use;
// commandtest is what their tests share.
//
// A command parses its arguments, asks the control API (engine/control) and prints what came
// back; it decides nothing that another user interface would have to decide again. The chain
// from a command line to its exit code is main -> execute -> term.App.Run -> newRoot -> the
// command; an error becomes an exit code and a remedy in term.Explain.
package main
