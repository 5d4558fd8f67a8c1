// Package address maps who a message is from to the agent it is for: the codec of
// descriptor.json, and the Index from descriptor, handle and name to agent id.
//
// Files: agents/<id>/descriptor.json says who an agent is, written once when it is
// made and a user's from then on; agents/handles.jsonl gives every agent a path
// of serial numbers for users, append-only, so that a number is never used twice;
// agents/<id>/.descriptor.json is a copy of the last good descriptor (kept.go).
// The engine reads the Index, the only writer of agents/.
package address
