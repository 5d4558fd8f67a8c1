package agents

import (
	"testing"
	"time"
)

// A draft that takes long to write is written less often: the model's stream waits for it.
func TestALongDraftIsWrittenLessOften(t *testing.T) {
	began := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for took, pause := range map[time.Duration]time.Duration{
		time.Millisecond:        draftEvery,
		draftEvery / 4:          draftEvery,
		draftEvery:              4 * draftEvery,
		1300 * time.Millisecond: 5200 * time.Millisecond,
	} {
		ended := began.Add(took)
		if got := nextDraft(began, ended).Sub(ended); got != pause {
			t.Errorf("after a write of %s the next waits %s, want %s", took, got, pause)
		}
	}
}
