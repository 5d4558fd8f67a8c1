package record

import (
	"daycare/engine/crash"
	"daycare/engine/message"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/engine/crash/crashtest"
	"daycare/engine/disk"
)

// saves are all that make something of an agent durable.
var saves = map[string]func(t *testing.T) func() error{
	"Append and Barrier": func(t *testing.T) func() error {
		h := begun(t)
		return func() error {
			if _, err := h.Append(&Note{Text: "x"}); err != nil {
				return err
			}
			err := h.Barrier()
			if h.Durable() != (err == nil) {
				t.Errorf("barrier: %v, durable: %v", err, h.Durable())
			}

			return err
		}
	},
	"Begin": func(t *testing.T) func() error {
		h, _ := reopen(t, t.TempDir(), newClock())
		return func() error { return errors.Join(h.Begin("s1"), h.Sync()) }
	},
	"Rotate": func(t *testing.T) func() error {
		h := large(t)
		add(t, h, &Reset{Session: "s2", V: Version, Reason: "user"})
		return func() error {
			rotated, err := h.Rotate()
			if err == nil && !rotated {
				t.Error("not rotated")
			}
			return err
		}
	},
	"PutBlob": func(t *testing.T) func() error {
		dir := t.TempDir()
		return func() error { _, err := PutBlob(disk.NewVolume(dir), dir, "text"); return err }
	},
	"PutBlob again": func(t *testing.T) func() error {
		dir := t.TempDir()
		if _, err := PutBlob(disk.NewVolume(dir), dir, "text"); err != nil {
			t.Fatal(err)
		}
		return func() error { _, err := PutBlob(disk.NewVolume(dir), dir, "text"); return err }
	},
	"KeepBlob": func(t *testing.T) func() error {
		dir := t.TempDir()
		sha, err := PutBlob(disk.NewVolume(dir), dir, "text")
		if err != nil {
			t.Fatal(err)
		}
		return func() error { return KeepBlob(disk.NewVolume(dir), dir, sha) }
	},
	"WriteDraft": func(t *testing.T) func() error {
		dir := t.TempDir()
		return func() error { return WriteDraft(disk.NewVolume(dir), dir, Draft{Turn: "t"}) }
	},
	"UpdateState": func(t *testing.T) func() error {
		dir := t.TempDir()
		state(t, dir, `{"seq":1}`)
		return func() error { return UpdateState(disk.NewVolume(dir), dir, func(s *State) { s.Seq = 2 }) }
	},
	"EndState": func(t *testing.T) func() error {
		dir := t.TempDir()
		state(t, dir, `{"seq":1}`)
		return func() error { _, err := EndState(disk.NewVolume(dir), dir, Ended{Reason: "x"}); return err }
	},
	"EndState of a broken one": func(t *testing.T) func() error {
		dir := t.TempDir()
		state(t, dir, `{"seq":`)
		return func() error { _, err := EndState(disk.NewVolume(dir), dir, Ended{Reason: "x"}); return err }
	},
	"Publish": func(t *testing.T) func() error {
		dir := t.TempDir()
		state(t, dir, "{}")
		return func() error {
			_, err := Publish(disk.NewVolume(dir), dir, stateName, []byte(`{"seq":1}`), []byte("{}"))
			return err
		}
	},
	"AppendApart": func(t *testing.T) func() error {
		h := begun(t)
		h.Close()
		return func() error {
			return AppendApart(disk.NewVolume(h.dir), h.dir, slog.New(slog.DiscardHandler),
				func(*Obligations) []Record { return []Record{&Note{Text: "x"}} })
		}
	},
	"Open after a rotation that a crash cut": func(t *testing.T) func() error {
		h := begun(t)
		h.Close()
		if err := errors.Join(os.Mkdir(filepath.Join(h.dir, closedDir), 0o700),
			os.Link(h.path(), filepath.Join(h.dir, closedDir, "000001.jsonl"))); err != nil {
			t.Fatal(err)
		}
		return func() error {
			again, _, err := Open(disk.NewVolume(h.dir), h.dir, time.Now, nil)
			if err == nil {
				again.Close()
			}
			return err
		}
	},
}

func state(t *testing.T, dir, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, stateName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Whatever step fails, who asked for it hears of it. The copy of the last good state is a
// cache, and space is kept back for a history on a full disk.
func TestEveryFailedStepIsReported(t *testing.T) {
	for name, save := range saves {
		for _, fault := range []string{"eio", "emfile"} {
			t.Run(name, func(t *testing.T) {
				crashtest.EachStepFails(t, fault, save, "state.kept.write", "state.kept.rename")
			})
		}
	}
}

// On a full disk a history is not rotated, its sessions are noted later, and the agent continues.
func TestRotationOnAFullDisk(t *testing.T) {
	for _, step := range []string{"history.rotate.write", "history.rotate.rename", "sessions.write"} {
		t.Run(step, func(t *testing.T) {
			h := large(t)
			add(t, h, &Reset{Session: "s2", V: Version, Reason: "user"})
			crash.Arm(t, "enospc@"+step+"#1")
			rotated, err := h.Rotate()
			if err != nil || rotated != strings.HasPrefix(step, "sessions") {
				t.Fatalf("rotated %v, %v", rotated, err)
			}

			crash.Arm(t, "")
			if list, err := EndedSessions(h.dir); err != nil || strings.HasPrefix(step, "sessions") != (len(list) == 0) {
				t.Errorf("noted are %v, %v", list, err)
			}
			add(t, h, &Note{Text: "goes on"})
			if _, err := h.Rotate(); err != nil {
				t.Fatal(err)
			}

			list, err := EndedSessions(h.dir)
			if err != nil || len(list) != 1 || list[0].ID != "s1" {
				t.Errorf("noted are %+v, %v", list, err)
			}
		})
	}
}

// Of sessions only those lines count that can be read and name one.
func TestEndedSessionsLeavesOutWhatItCannotRead(t *testing.T) {
	dir := t.TempDir()
	text := `{"id":"s1","cost":1}` + "\n{broken\n{\"cost\":2}\n" + `{"id":"s2"}`
	if err := os.WriteFile(filepath.Join(dir, sessionsName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if list, err := EndedSessions(dir); err != nil || len(list) != 2 || list[0].ID != "s1" || list[1].ID != "s2" {
		t.Errorf("%+v, %v", list, err)
	}
}

// Nothing is written apart where there is nothing to say.
func TestAppendApart(t *testing.T) {
	h := begun(t)
	add(t, h, &TurnBegin{Turn: "t", Attempt: 1}, promising("t", "x", "o1"), &Delivery{Out: "o1", Parts: 2},
		promising("t", "y", "o2"), &TurnEnd{Turn: "t", Reason: ReasonDone})
	h.Close()
	before := content(t, h)
	apart := func(build func(*Obligations) []Record) {
		t.Helper()
		if err := AppendApart(disk.NewVolume(h.dir), h.dir, slog.New(slog.DiscardHandler), build); err != nil {
			t.Fatal(err)
		}
	}
	apart(func(*Obligations) []Record { return nil })
	if string(content(t, h)) != string(before) {
		t.Error("nothing was said, and something was written")
	}

	apart(func(o *Obligations) []Record { return o.GiveUp("removed") })
	again, _ := reopen(t, h.dir, newClock())
	if o := again.Obligations(); len(o.Outs) != 0 {
		t.Errorf("still owed are %+v", o.Outs)
	}
	last := string(content(t, h)[len(before):])
	if strings.Count(last, `"final":true`) != 2 || strings.Count(last, `"error":"removed"`) != 2 ||
		!strings.Contains(last, `"parts":2`) || !strings.Contains(last, `"parts":1`) {
		t.Errorf("written is %s", last)
	}
	if err := AppendApart(disk.NewVolume(h.dir), filepath.Join(h.dir, "none"), nil, nil); !errors.Is(err, ErrGone) {
		t.Errorf("to no folder: %v", err)
	}
}

func TestDeliveryOf(t *testing.T) {
	for name, tt := range map[string]struct {
		result message.Result
		want   *Delivery
	}{
		"delivered": {message.Result{Out: "o", Part: 1, Parts: 2, RemoteID: "7"},
			&Delivery{Out: "o", Part: 1, Parts: 2, RemoteID: "7"}},
		"kept":           {message.Result{Out: "o", Kept: true}, nil},
		"kept and final": {message.Result{Out: "o", Kept: true, Final: true, Error: "x"}, nil},
		"failed":         {message.Result{Out: "o", Error: "x", Retry: true}, nil},
		"given up": {message.Result{Out: "o", Parts: 1, Error: "x", Final: true, Retry: true},
			&Delivery{Out: "o", Parts: 1, Error: "x", Final: true, Retry: true}},
	} {
		got := DeliveryOf(tt.result)
		if (got == nil) != (tt.want == nil) || got != nil && *got != *tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
