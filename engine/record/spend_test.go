package record

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSpent(t *testing.T) {
	dir := t.TempDir()
	at := func(day int) time.Time { return time.Date(2026, 11, day, 12, 0, 0, 0, time.UTC) }
	var closed, open []byte
	line := func(to *[]byte, seq int64, day int, r Record) {
		*to = append(*to, Encode(&Entry{Seq: seq, At: at(day), Rec: r})...)
	}
	call := func(model string, cost float64) *Assistant {
		return &Assistant{Provider: "p", Model: model, Finish: FinishEndTurn, Tokens: Tokens{Input: 10, Output: 2}, Cost: cost}
	}
	line(&closed, 1, 1, &Start{Session: "s", V: Version})
	line(&closed, 2, 1, call("old", 1))
	line(&open, 2, 1, &Start{Session: "s", V: Version, Continues: "history/000001.jsonl"})
	line(&open, 3, 2, call("m", 2))
	line(&open, 4, 2, &Assistant{Finish: FinishError, Text: "no answer"}) // no call
	line(&open, 5, 3, &Summary{Provider: "p", Model: "m", Cost: 3})
	open = append(open, "not a record\n"...)
	open = append(open, `{"type":"assistant_message","at":"2026-11-04T12:00:00Z","provider":"p","model":"by hand","cost":4}`+"\n"...)
	if err := os.MkdirAll(filepath.Join(dir, closedDir), 0o700); err != nil {
		t.Fatal(err)
	}

	for path, data := range map[string][]byte{historyName: open, closedDir + "/000001.jsonl": closed} {
		if err := os.WriteFile(filepath.Join(dir, path), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	for _, tt := range []struct {
		since time.Time
		want  []float64
	}{{time.Time{}, []float64{4, 3, 2, 1}}, {at(3), []float64{4, 3}}, {at(5), nil}} {
		var got []float64
		if err := Spent(dir, tt.since, func(s Spend) { got = append(got, s.Cost) }); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("since %s (-want +got):\n%s", tt.since, diff)
		}
	}

	if err := Spent(filepath.Join(dir, "none"), time.Time{}, func(Spend) { t.Error("a call in no history") }); err != nil {
		t.Error(err)
	}
}

func TestInContext(t *testing.T) {
	used := func(tokens int64) *Assistant {
		return &Assistant{Provider: "p", Model: "m", Finish: FinishEndTurn, Tokens: Tokens{Input: tokens - 3, CacheRead: 1, Output: 2}}
	}
	failed := &Assistant{Finish: FinishError, Text: "no answer"}
	for _, tt := range []struct {
		name string
		recs []Record
		want int64
	}{
		{"nothing", nil, 0},
		{"the newest call counts", []Record{used(100), &User{Text: "x"}, used(200), &TurnEnd{Reason: ReasonDone}}, 200},
		{"one that failed does not", []Record{used(100), failed}, 100},
		{"a reset begins anew", []Record{used(100), &Reset{}, &User{Text: "x"}}, 0},
		{"a summary is of another size", []Record{used(100), &Summary{}}, 0},
		{"a rewind takes some away", []Record{used(100), &Rewind{}}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			data := Encode(&Entry{Seq: 1, At: time.Now(), Rec: &Start{Session: "s", V: Version}})
			for i, r := range tt.recs {
				data = append(data, Encode(&Entry{Seq: int64(i + 2), At: time.Now(), Rec: r})...)
			}
			if err := os.WriteFile(filepath.Join(dir, historyName), data, 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := InContext(dir); got != tt.want || err != nil {
				t.Errorf("got %d, %v; want %d", got, err, tt.want)
			}
		})
	}
}

// What the newest request used is found beside the sums; what failed used nothing.
func TestTotalsLast(t *testing.T) {
	h := begun(t)
	if _, last, err := h.Totals(0); err != nil || last != nil {
		t.Errorf("a history without requests: %v, %v", last, err)
	}
	for _, input := range []int64{10, 20} {
		add(t, h, &Assistant{Turn: "t", Finish: FinishEndTurn, Provider: "p", Model: "m", Tokens: Tokens{Input: input}})
	}

	add(t, h, &Assistant{Turn: "t", Finish: FinishError, Text: "no answer"})
	if stats, last, err := h.Totals(0); err != nil || last == nil || last.Input != 20 || stats["p"]["m"].Input != 30 {
		t.Errorf("%v, %v, %v", stats, last, err)
	}
	if _, last, err := h.Totals(h.Obligations().LastSeq); err != nil || last != nil {
		t.Errorf("after the newest record: %v, %v", last, err)
	}
}
