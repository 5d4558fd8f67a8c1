// Package engine is the middle of daycare: an address becomes an agent, a message
// becomes an item in that agent's inbox, and what the agent answers goes back to
// the chat it came from.
//
// A System is made of parts, each with the state that it needs:
//
//	mailroom     makes messages durable items of their agents (deliver.go, systemmessage.go)
//	drops        are files in drop/ that become messages
//	approvals    are approval requests and their decisions (asks.go)
//	actors       are the agents in memory: who is awake, who is woken (actors.go, entry.go)
//	senders      send answers to chats: in order within a chat, chats in parallel (sender.go)
//	connectors   are the active connectors
//	registrar    creates agents
//	lifecycle    starts, stops and ends agents
//	descriptors  are read again when users edit them (edits.go)
//	folderWatch  notices agents that users add or remove by hand (folders.go)
//	directory    answers what user interfaces ask (view.go)
//	archive      forks, exports, restores and edits folders of agents, with engine/folders
//
// A Family is what agents can do to each other: relations tells which agent belongs to
// which, children are started and ended, grants give and take permissions, chats are
// written to.
//
// A System keeps no state that can be derived. The inbox and the history of an agent tell
// whether it has work; an agent without work is not in memory. Starting is recovering: the
// tails of every inbox and history are read, and an agent is woken unless they prove that
// everything is done and delivered.
package engine
