// Package chat is what is the same for all chat platforms, written once: who may
// write, the slash commands, approvals, files, "typing", and what becomes of a
// message that cannot be taken. A connector makes a Desk, hands it each message
// (Take) and each pressed button (Answer), and lets it watch (Run) while it runs.
//
// desk.go takes messages, amend.go and written.go what is done to earlier ones, waiting.go keeps
// those that are refused for now, gate.go keeps strangers out, pair.go gives them codes,
// commands.go answers commands, asks.go shows permission requests, cards.go remembers them,
// watch.go follows the events. client.go calls HTTP APIs, retry.go has what connectors do after
// failures.
package chat
