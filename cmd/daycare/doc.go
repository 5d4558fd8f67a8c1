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
//	setup     init, auth, providers, models, connectors, service; movein has import
//	doctor    doctor, validate, schema, gc: what is in the files, and what is wrong with it
//	upkeep    backup, restore, update, uninstall
//	cluster   commands about several machines that work on the same agents; mcp: about MCP servers
//	lab       test, replay, batch and changes: tries agents out
//	daemon    builds and runs a workspace; knows no command line
//	peers     makes a daemon one of several machines
//	inspect   gives the API what the commands print that look at files
//	chaos     kills the daemon in every way and compares files with the outside world
//	bench     measures
//
// plugins, models, logfile, version, machine, man, tracing and follow are small packages that several
// of them use; early answers version and --help before the others are initialised; fit lays out help for a
// terminal; commandtest is what their tests share. docs/packages.md lists all folders.
//
// A command parses its arguments, asks the control API (engine/control) and prints what came
// back; it decides nothing that another user interface would have to decide again. The chain
// from a command line to its exit code is main -> execute -> term.App.Run -> newRoot -> the
// command; an error becomes an exit code and a remedy in term.Explain.
package main
