package record

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"daycare/engine/disk"
	"daycare/engine/disk/disktest"
	"daycare/engine/message"
)

// draw makes a random record; ids are drawn from small sets, so that records hit
// each other.
func draw(r *rapid.T, last int64, outs *int) Record {
	id := func(prefix string) string { return fmt.Sprint(prefix, rapid.IntRange(1, 4).Draw(r, prefix)) }
	text := rapid.SampledFrom([]string{"", "a", "é\u2028\n", "bad \xff utf8"}).Draw(r, "text")
	switch rapid.IntRange(0, 15).Draw(r, "kind") {
	case 0:
		return &Reset{Session: id("s"), V: Version, Reason: "user"}
	case 1:
		return &Rewind{To: rapid.Int64Range(0, last+2).Draw(r, "to")}
	case 2:
		return &Permission{Token: id("p"),
			Event: rapid.SampledFrom([]string{"asked", "once", "always", "deny", "expired", "revoked"}).Draw(r, "event"), Tag: "@web"}
	case 3, 4:
		return &TurnBegin{Turn: id("t"), Items: []string{id("i")}, Attempt: rapid.IntRange(1, 3).Draw(r, "attempt")}
	case 5, 6:
		return &User{Item: id("i"), Text: text, Silent: rapid.IntRange(0, 4).Draw(r, "silent") == 0}
	case 7, 8, 9:
		a := &Assistant{Turn: id("t"), Text: text, Provider: id("v"), Cost: 0.5, Tokens: Tokens{Input: 3, Output: 1},
			Finish: rapid.SampledFrom([]Finish{FinishEndTurn, FinishToolUse, FinishMaxTokens, FinishCanceled,
				FinishInterrupted, FinishError}).Draw(r, "finish")}
		if rapid.Bool().Draw(r, "calls") {
			a.ToolCalls = []ToolCall{{ID: id("c"), Name: "x",
				Arguments: []byte(rapid.SampledFrom([]string{`{"a": [1, 2]}`, `{`, ``}).Draw(r, "args"))}}
		}
		if rapid.Bool().Draw(r, "promise") {
			*outs++ // a promise is made once
			a.Out = &Out{ID: fmt.Sprint("o", *outs), To: message.Address{Connector: "x", ChannelID: "y"}}
		}
		return a
	case 10:
		return &ToolStart{ToolCallID: id("c"), Name: "x", Grant: rapid.SampledFrom([]string{"", "p1", "p2"}).Draw(r, "grant")}
	case 11:
		return &ToolResult{ToolCallID: id("c"), Name: "x",
			Status: rapid.SampledFrom([]Status{StatusOK, StatusInterrupted}).Draw(r, "status"), Output: Output{Text: text}}
	case 12:
		d := &Delivery{Out: fmt.Sprint("o", *outs-rapid.IntRange(0, 2).Draw(r, "out")),
			Part: rapid.IntRange(0, 2).Draw(r, "part"), Parts: 3, Final: rapid.IntRange(0, 5).Draw(r, "final") == 0}
		d.Error = rapid.SampledFrom([]string{"", "", "no"}).Draw(r, "error")
		return d
	case 13, 14:
		return &TurnEnd{Turn: id("t"), Reason: rapid.SampledFrom([]string{ReasonDone, ReasonPoison, ReasonCanceled}).Draw(r, "reason")}
	default:
		return &Summary{Text: text, From: 1, KeptFrom: rapid.Int64Range(0, last+2).Draw(r, "kept"), Provider: id("v"), Cost: 1}
	}
}

// TestFoldsAgree: what is folded as records are appended is what a restart finds
// in the file, whatever was appended, with rotations in between.
func TestFoldsAgree(t *testing.T) { foldsAgree(t, false) }

// TestFoldsAgreeElsewhere: another machine, which has what was replicated, finds it too.
func TestFoldsAgreeElsewhere(t *testing.T) { foldsAgree(t, true) }

func foldsAgree(t *testing.T, elsewhere bool) {
	rapid.Check(t, func(r *rapid.T) {
		dir := t.TempDir()
		vol, c, log := disk.NewVolume(dir), newClock(), slog.New(slog.DiscardHandler)
		replica := disktest.New(dir, func(name string) bool {
			return name == "history.jsonl" || name == stateName || strings.HasPrefix(name, "history/")
		}, nil)
		if elsewhere {
			vol.Replicate(replica, true)
		}
		open := func() *History {
			h, _, err := Open(vol, dir, c.now, log)
			if err != nil {
				r.Fatal(err)
			}
			h.limits.rotate = 2000
			return h
		}
		h := open()
		defer func() { h.Close() }()
		if err := h.Begin("s0"); err != nil {
			r.Fatal(err)
		}

		stats, outs := Stats{}, 0
		if rapid.Bool().Draw(r, "early context") {
			h.Context()
			h.Session()
		}

		for range rapid.IntRange(1, 40).Draw(r, "batches") {
			var recs []Record
			for range rapid.IntRange(1, 3).Draw(r, "records") {
				recs = append(recs, draw(r, h.Obligations().LastSeq, &outs))
			}
			entries, err := h.Append(recs...)
			if err != nil {
				r.Fatal(err)
			}

			for _, e := range entries {
				stats.entry(e)
			}
			if rapid.IntRange(0, 3).Draw(r, "rotate") == 0 {
				if _, err := h.Rotate(); err != nil {
					r.Fatal(err)
				}
			}
		}

		if elsewhere {
			if err := h.Barrier(); err != nil {
				r.Fatal(err)
			}
			vol, dir = disk.NewVolume(dir), filepath.Join(t.TempDir(), "elsewhere")
			rebuild(r, replica, dir)
		}
		agree(r, h, open, stats)
	})
}

// rebuild makes a folder of what a replica has.
func rebuild(r *rapid.T, replica *disktest.Replica, dir string) {
	for name, data := range replica.Files() {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(data), 0o600)); err != nil {
			r.Fatal(err)
		}
	}
}

func agree(r *rapid.T, h *History, open func() *History, stats Stats) {
	again := open()
	defer again.Close()
	same := func(what string, live, read any, err error) {
		if err != nil {
			r.Fatalf("%s: %v", what, err)
		}
		if diff := cmp.Diff(live, read, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Context{}, "Generation"),
			cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			r.Fatalf("%s (-in memory +after a restart):\n%s", what, diff)
		}
	}
	same("obligations", h.Obligations(), again.Obligations(), nil)
	live, err := h.Context()
	if err != nil {
		r.Fatal(err)
	}

	read, err := again.Context()
	same("context", live, read, err)
	session, err := h.Session()
	if err != nil {
		r.Fatal(err)
	}

	counted, err := again.Session()
	same("session", session, counted, err)
	totals, _, err := again.Totals(0)
	same("totals", stats, totals, err)
}
