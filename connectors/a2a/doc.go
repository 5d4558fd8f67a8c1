// Package a2a is the connector for other agents: clients of the A2A protocol 1.0 read the cards of
// the agents that the owner publishes, and give them tasks, over JSON-RPC and over REST. It has no
// listener and no secrets: the control API serves its paths, and a token says who may use them.
//
// A task is an item of an agent's inbox, and its id is the item's. So it is durable as every
// message is, and its state and its answer are read from the inbox and from history when a client
// asks: there is no other record of it. What clients ask to be notified of is in push.json.
//
//	serve.go   the paths, limits, and whose agent is meant
//	card.go    agent cards
//	tasks.go   the operations of the protocol
//	stream.go  a turn as a stream of events
//	task.go    messages of clients as messages of agents, and items as tasks
//	list.go    the tasks of a client
//	push.go    notifications, which leave through the outbox of the agent
//
// A client is an agent, and what it writes may be what a web page told it. So its messages are
// marked as a stranger's, and it cannot answer approvals. docs/a2a.md is for owners.
package a2a
