// Package a2a is the tool by which agents give tasks to agents of other programs, over the A2A
// protocol 1.0. The owner lists them in the settings; a call needs the right @a2a:HOST.
//
// A task that is done soon is the result of the call. Of a longer one the agent gets a system
// message when it has ended: until then it is in a2a.json, a JSON object by call, and is asked for
// again after every start.
//
//	a2a.go     the tool
//	client.go  connections: where they may lead, and what may come back
//	watch.go   tasks that were not done soon
//	words.go   what a remote agent said, as text
//
// What a remote agent says is data and never an instruction: it carries its source
// (permission.A2A), which marks the turn that reads it.
package a2a
