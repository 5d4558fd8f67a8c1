package inbox

import "sync/atomic"

// A Quota bounds what all loaded inboxes of a process hold together. A nil Quota
// bounds nothing.
type Quota struct {
	max  int64
	used atomic.Int64 // open items, bytes on disk
	kept atomic.Int64 // copies of open items in memory, bytes
}

// maxKept bounds the copies of open items that all inboxes keep in memory. A
// copy is what an accepted item is appended again from after an editor wrote an
// older version over the file.
const maxKept = 16 << 20

// NewQuota makes a quota of max bytes of open items; 0 means MaxBytesTotal.
func NewQuota(max int64) *Quota {
	if max <= 0 {
		max = MaxBytesTotal
	}
	return &Quota{max: max}
}

// Used is how many bytes of open items there are.
func (q *Quota) Used() int64 {
	if q == nil {
		return 0
	}
	return q.used.Load()
}

// room takes n bytes if there are so many.
func (q *Quota) room(n int64) bool {
	return q == nil || within(&q.used, n, q.max)
}

// add takes n bytes whether or not there is room; a negative n gives them back.
func (q *Quota) add(n int64) {
	if q != nil {
		q.used.Add(n)
	}
}

// keep takes n bytes of memory if there are so many.
func (q *Quota) keep(n int) bool {
	return q == nil || within(&q.kept, int64(n), maxKept)
}

// forceKeep takes n bytes of memory whether or not there is room.
func (q *Quota) forceKeep(n int) { q.unkeep(-n) }

func (q *Quota) unkeep(n int) {
	if q != nil {
		q.kept.Add(-int64(n))
	}
}

func within(sum *atomic.Int64, n, max int64) bool {
	if sum.Add(n) <= max {
		return true
	}
	sum.Add(-n)
	return false
}
