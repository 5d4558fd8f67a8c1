// Package crash holds the failpoints that stand at every durable step, so that
// a harness can make the process die or the disk fail exactly there.
//
// Three shapes of step exist: Write (bytes go to a file, a crash may leave part
// of them), Do (one operation that happens or does not: a sync, a rename, an
// unlink) and Point (a place between two steps). Unarmed, each costs two loads.
//
// They are armed by the environment, because a harness can set that for any
// process it starts; a test arms those of its own process with Arm:
//
//	DAYCARE_FAILPOINT=ACTION@POINT#K[:PERCENT][;...]
//
// ACTION is kill, stall, slow, clock or a fault; POINT is a name of Names or
// empty for any; K is how many times the point is passed, from 1; PERCENT
// (default 0) is how much of a write reaches the file before the action. For Do
// a percentage of 100 means that the operation was done first. stall is kill by a
// disk that hangs: the process dies a moment later, in which the rest of it continues.
// slow makes a sync take a second, clock+72h or clock-72h moves what Now returns; the
// operation itself is done. The faults are enospc, eio, erofs, emfile, enfile, enomem,
// eacces, eintr, estale, einval, and short, which writes a part and then has no room.
// An action with K written as K+ stays from then on.
//
//	DAYCARE_FAILPOINT_CLOCK=DURATION
//
// is how far Now is ahead of the clock (behind it, if negative) from the start.
//
//	DAYCARE_FAILPOINT_TRACE=FILE
//
// appends the name of each point passed to FILE, one a line.
//
//	DAYCARE_FAILPOINT_MIRROR=DIR
//
// keeps in DIR what a power cut at this moment would leave; see Mirror.
package crash
