// Package terminal is the full-screen user interface: all agents at a glance, and
// a conversation with each. It is a client of engine/control like any other and
// stores nothing that matters: the truth is in the daemon's files, and the
// few hints of its own (drafts, what was read) may be deleted.
//
// Where to look:
//
//	run.go       Run: the program and what it needs from its caller
//	link.go      the connection: events in batches, connecting again
//	calls.go     what is asked of the API, and the messages that answers become
//	model.go     the model: which message goes to which part
//	keys.go      keys that mean the same everywhere
//	world.go     all agents: the newest snapshot, with what events told since; words.go
//	             are the texts about them
//	screen.go    what everything is drawn for, and the pieces that all pages draw with
//	home.go      the page of all agents; homeview.go is how it looks
//	talk.go      the page of one conversation; talkview.go is how it looks, talkkeys.go
//	             what its keys do, side.go the pane beside it on a wide screen
//	input.go     the line to type in; paste.go folds pastes in it, complete.go completes
//	             what is typed there
//	slash.go     the commands, by what they are about: slashagents, slashtalk, slashlook,
//	             slashchoose; chooser.go is a list to choose from
//	picker.go approvals.go queue.go panel.go help.go   what opens over a page
//	ring.go      switching between agents
//	memory.go    drafts, what was read, what was typed: the hints on disk
//
// Bubble Tea calls View after every message, so messages are few: events come in
// batches, at most one in 33 ms, however many agents stream. Only the agent that
// is looked at is followed word by word.
package terminal
