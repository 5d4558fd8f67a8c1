// Package engine is the middle of daycare: an address becomes an agent, a message
// becomes an item in that agent's inbox, and what the agent answers goes back to
// the chat it came from.
//
// A System is made of parts, each with the state that it needs:
//
//	mailroom     makes messages durable items of their agents (deliver.go, tell.go)
//	letters      are files in drop/ that become messages
//	approvals    are requests for permission and the answers to them (asks.go)
//	actors       are the agents in memory: who is awake, who is woken (actors.go, entry.go)
//	senders      give answers to chats, in order, one chat beside the other (sender.go)
//	links        are the connectors in force
//	registrar    makes agents
//	lifecycle    is how agents begin and end
//	descriptors  are read again when people edited them (edits.go)
//	folderWatch  notices agents that people make or take away by hand (folders.go)
//	directory    says what there is to see (view.go)
//	archive      copies, keeps and edits folders of agents, by engine/folders
//
// A Family is what agents may do to each other: kin says whose agent is whose, children
// are started and ended, grants give and take rights, chats are spoken to.
//
// System holds no state that could be derived. Whether an agent has work is what
// its inbox and history say; an agent without work is not in memory. Start-up is
// recovery: the tails of every inbox and history are looked at, and an agent whose
// tails do not prove that all is done and delivered is woken.
package engine
