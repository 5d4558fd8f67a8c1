package inbox

import (
	"errors"
	"testing"
	"time"

	"daycare/engine/disk"
	"daycare/engine/disk/disktest"
	"daycare/engine/message"
)

// While the replica cannot be reached nothing is accepted, and what another machine has
// fenced is not either; both say so.
func TestNothingIsAcceptedWithoutTheReplica(t *testing.T) {
	dir := t.TempDir()
	vol := disk.NewVolume(dir)
	replica := disktest.New(dir, func(rel string) bool { return rel == FileName }, nil)
	vol.Replicate(replica, true)
	f, _, err := Open(vol, dir, NewQuota(MaxBytesTotal), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	accept := func(text string) error {
		_, err := f.Accept(t.Context(), Item{Kind: message.Text, Text: text})
		return err
	}

	if err := accept("first"); err != nil {
		t.Fatal(err)
	}
	replica.SetAway(true)
	if err := accept("second"); !errors.Is(err, disk.ErrAway) {
		t.Errorf("away: %v, want ErrAway", err)
	}
	replica.SetAway(false)
	replica.Fence()
	if err := accept("third"); !errors.Is(err, disk.ErrFenced) {
		t.Errorf("fenced: %v, want ErrFenced", err)
	}
	if open := f.Open(); len(open) != 1 {
		t.Errorf("open: %v, want the first item", open)
	}
}
