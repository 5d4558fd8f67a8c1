// Package compact makes a long conversation shorter. It says when that is due
// (Due), what is to go and what stays (Make), and puts a summary in the place of
// what goes: one that a model writes (Summarize), or, where none can, a list of
// what was asked (Digest). It writes nothing; the agent records the result.
//
// # What stays
//
// The newest records stay as they are, as many as fit Limits.Tail, and always
// from a place on where a conversation may begin: what somebody said, or an
// answer of the model. The latest request stays word for word: as a record, or,
// if the current turn has outgrown the tail, quoted in the summary.
//
// # What the summary is
//
// A text with fixed sections (Sections), the first thing that the model reads
// from then on. It is made of a transcript in which long outputs are cut, part by
// part if it does not fit at once: each part is summarised together with the
// summary of the parts before it. So the model that summarises never needs a
// larger window than the one that answers.
package compact
