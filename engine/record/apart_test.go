package record

import (
	"log/slog"
	"slices"
	"testing"

	"daycare/engine/crash"
	"daycare/engine/disk"
)

// Records appended apart are durable when it returns.
func TestAppendApartSyncs(t *testing.T) {
	h := begun(t)
	h.Close()
	met := crash.Arm(t, "eio@history.sync#1")
	err := AppendApart(disk.NewVolume(h.dir), h.dir, slog.New(slog.DiscardHandler),
		func(*Obligations) []Record { return []Record{&Note{Text: "x"}} })
	if err == nil || !slices.Equal(met(), []string{"history.sync"}) {
		t.Errorf("%v; steps that failed: %q", err, met())
	}
}
