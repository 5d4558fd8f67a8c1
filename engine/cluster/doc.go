// Package cluster keeps the folders of agents on several machines, in NATS JetStream. It is
// the only package that imports nats.
//
// A unit is a folder with one writer at a time: that of one agent. What its barriers make
// durable is appended to the log of the unit, which is one subject of one stream: with several
// replicas dc.log.<agent> of "daycare", with one dc.part.<n>.<agent> of "daycare-<n>" (see
// logs.go). A message is appended only if the newest one of the subject is the one
// that its writer knows (a compare-and-set): so the log is what happened, in one order, and
// a writer that was replaced cannot append any more. That is the only fence. Leases and
// clocks decide when a machine tries to take over; a wrong guess costs work, never data.
//
// A message has headers:
//
//	D-V         1, the version of this format
//	D-Owner     the boot id of the writer
//	D-Id        an id of the message, by which a writer that got no answer finds it
//	D-N         its number in the unit, from 1, without gaps
//	D-Released  1: the writer gave the unit up with it
//	D-Retired   1: its agent was removed; what was before does not count
//
// and a body of segments: a line of JSON each (see segment), followed by n bytes. Contents
// over 64 KiB are in the object store "dc-objects" under their SHA-256, and the segment
// names it.
//
// Buckets, which hold nothing that cannot be lost:
//
//	dc-nodes   boot id -> a machine; a key that is not renewed for 3 seconds is gone
//	dc-owners  agent -> who has it awake, or left it with work; so that it is looked after
//	dc-used    what happens once, such as a signature, for minutes
//	dc-leases  what one machine does at a time, such as running a connector -> which one does
//
// and three that every machine can write again from what it has:
//
//	dc-agents  who the agents are: their descriptors, and whose each address and handle is
//	dc-files   files that belong to all machines, by their names (see shared.go)
//	dc-figures what each machine has spent (see figures.go)
//
// Machines ask each other through subjects: dc.rpc.<boot> takes items for agents of that
// machine, dc.item.<boot> says what became of one, dc.state.<boot> has the states of its agents,
// dc.api.<boot> takes requests of its API (see api.go), dc.offer.<boot> says what it has of an agent (see repair.go). Attachments are
// objects, too.
//
// A Node is one machine of it: the disk.Replica of its volume, and the engine.Peers of its
// System. The folder of an agent is the working copy of its owner. Whoever claims the unit
// reads the log and builds the folder; that is then an ordinary start of the agent.
package cluster
