// Package record stores what an agent does: history.jsonl (conversation, turn journal and outbox in
// one append-only file), state.json, draft.json and sessions.jsonl in the agent's folder.
//
// History is one log that is read in two ways. Obligations (items claimed, calls started, replies
// promised) are folded over every record, even those that a user rewound or edited away; Context
// (what the model sees) is folded with reset, summary, rewind and hand edits applied. A hand edit
// can change the second, never the first.
//
// Only the agent's own goroutine writes here, except UpdateState, which the engine calls too. The
// reading functions (Closing, Tail, Settled, ReadState…) use only the files, whether the agent runs
// or not.
package record
