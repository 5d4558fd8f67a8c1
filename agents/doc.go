// Package agents runs one agent: take an item, run a turn, reply, take the next.
//
// The agent is one goroutine and the only writer of its folder. Each of its parts has the
// state that it needs, and nobody else writes it:
//
//	agent       the loop: what is to be done next (agent.go, control.go, recover.go)
//	worker      a turn, from its opening to its end (worker.go)
//	turn        what one turn is about, with the agent as it was when the turn began (turn.go)
//	intake      takes items out of the inbox, makes records of them, closes them
//	requests    build the request from history
//	shortener   keeps the context shorter than what the model takes
//	caller      calls the model (call.go)
//	executor    runs tool calls (execute.go)
//	permits     ask a user for what a call needs, and record what users decide
//	rights      say what the agent may do now
//	hooking     runs the owner's programs at moments of a turn (hooks.go, hooktools.go)
//	replies     record answers and close the turn (reply.go, report.go)
//	deliveries  give answers to the outbox and record their delivery
//	files       are what users edit: the descriptor and state.json
//	journal     writes history; all of the above write through it
//
// A turn is five steps that follow each other in worker.go: build the request (requests),
// call the model (caller), record its answer (replies), execute its tool calls (executor),
// and when it calls no more, reply (replies).
//
// Every step is decided from the files. So a turn that a crash cut is not a special
// case: recover.go brings the history to where a step can begin, and the same
// steps continue. options.go has what an agent needs of its world.
package agents
