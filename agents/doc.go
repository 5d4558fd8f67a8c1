// Package agents runs one agent: take an item, run a turn, reply, take the next.
//
// The agent is one goroutine and the only writer of its folder. A turn is five
// steps that follow each other in turn.go: build the request from history (build),
// call the model (call), record its answer (record), execute its tool calls
// (execute), and when it calls no more, reply.
//
// Every step is decided from the files. So a turn that a crash cut is not a special
// case: recover.go brings the history to where a step can begin, and the same
// steps go on.
package agents
