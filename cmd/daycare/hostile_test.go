package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/engine/control"
)

// hostileTime is how long hands save beside a running agent. DAYCARE_LONG=1 makes it
// a minute.
func hostileTime() time.Duration {
	if os.Getenv("DAYCARE_LONG") != "" {
		return time.Minute
	}
	return 2 * time.Second
}

// A hand saves a file again and again, each time with a mark of its own, in one way
// after the other.
type hand struct {
	path               string
	saves, copies, err int // saves made; those that ended in a conflict copy; not possible
	lost               []string
}

// ways of saving that take no program.
var ways = []func(path string, data []byte) error{
	func(path string, data []byte) error { // beside, then over it
		if err := os.WriteFile(path+".swp", data, 0o600); err != nil {
			return err
		}
		return os.Rename(path+".swp", path)
	},
	func(path string, data []byte) error { return os.WriteFile(path, data, 0o600) }, // truncate, write
	func(path string, data []byte) error { // truncate, write in two pieces
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		half := len(data) / 2
		_, err1 := f.Write(data[:half])
		time.Sleep(time.Millisecond)
		_, err2 := f.Write(data[half:])

		return errors.Join(err1, err2, f.Close())
	},
	func(path string, data []byte) error { // away, then anew
		if err := os.Rename(path, path+"~"); err != nil {
			return err
		}
		return errors.Join(os.WriteFile(path, data, 0o600), os.Remove(path+"~"))
	},
	func(path string, data []byte) error { // open without truncating, write later, cut at the end
		f, err := os.OpenFile(path, os.O_RDWR, 0o600)
		if err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
		_, err = f.WriteAt(data, 0)
		return errors.Join(err, f.Truncate(int64(len(data))), f.Close())
	},
}

// save reads the file, puts the mark into it and saves it in one of the ways; then it
// looks whether the mark is there, or in a copy that was kept.
func (h *hand) save(mark string, with func(text, mark string) string) {
	data, err := os.ReadFile(h.path)
	if err == nil && len(data) > 0 {
		err = ways[h.saves%len(ways)](h.path, []byte(with(string(data), mark)))
	}
	if err != nil || len(data) == 0 {
		h.err++
		return
	}
	h.saves++

	// For the instant between a swap and its taking back, the runtime's version stands
	// there: lost is what does not come back.
	for range 400 {
		if strings.Contains(readOr(h.path), mark) {
			return
		}
		copies, _ := filepath.Glob(h.path + ".conflict-*")
		for _, copy := range copies {
			if strings.Contains(readOr(copy), mark) {
				h.copies++
				return
			}
		}
		time.Sleep(5 * time.Millisecond)
	}

	h.lost = append(h.lost, mark)
}

func readOr(path string) string {
	data, _ := os.ReadFile(path)
	return string(data)
}

// withMember puts the mark into a JSON object, in place of the one before.
func withMember(text, mark string) string {
	if at := strings.Index(text, `"mine":`); at >= 0 {
		text = text[:at] + text[at+strings.IndexByte(text[at:], ',')+1:]
	}
	return strings.Replace(text, "{", fmt.Sprintf("{\"mine\": %q,", mark), 1)
}

// withLine puts the mark into a history as a line of a user.
func withLine(text, mark string) string {
	return text + fmt.Sprintf("{\"type\":\"note\",\"text\":%q}\n", mark)
}

// TestHostileSaves has hands save state.json, descriptor.json and history.jsonl
// without a pause beside an agent at work, in every way of saving: no save is lost,
// and no record of the runtime.
func TestHostileSaves(t *testing.T) {
	t.Parallel()
	o := newOps(t)
	hands := []*hand{{path: filepath.Join(o.dir, "state.json")}, {path: filepath.Join(o.dir, "descriptor.json")},
		{path: filepath.Join(o.dir, "history.jsonl")}}
	var busy sync.WaitGroup
	stop := make(chan struct{})
	for i, h := range hands {
		busy.Go(func() {
			with, pause := withMember, time.Millisecond
			if i == 2 { // the file grows, and the agent reads it anew each time
				with, pause = withLine, 100*time.Millisecond
			}

			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				case <-time.After(pause):
				}
				h.save(fmt.Sprintf("hand%d-%d.", i, n), with)
			}
		})
	}

	turns := 0
	for end := time.Now().Add(hostileTime()); time.Now().Before(end); turns++ {
		o.ask(t, fmt.Sprintf("turn %d.", turns))
		if turns%3 == 0 { // the runtime writes state.json, too
			if _, err := o.client.Reset(t.Context(), "Ops"); err != nil {
				t.Error(err)
			}
		}
	}

	close(stop)
	busy.Wait()
	o.ask(t, "the end.")
	o.judge(t, hands, turns)
}

// judge counts what is not there.
func (o ops) judge(t *testing.T, hands []*hand, turns int) {
	history := readOr(filepath.Join(o.dir, "history.jsonl"))
	older, _ := filepath.Glob(filepath.Join(o.dir, "history", "*.jsonl"))
	for _, path := range older {
		history += readOr(path)
	}

	for n := range hands[2].saves { // those that were seen once must still be there
		mark := fmt.Sprintf(`"hand2-%d."`, n)
		if !strings.Contains(history, mark) && hands[2].err == 0 && hands[2].copies == 0 {
			hands[2].lost = append(hands[2].lost, mark)
		}
	}

	records := 0
	if keep := os.Getenv("DAYCARE_KEEP"); keep != "" {
		os.WriteFile(keep, []byte(history), 0o600)
	}

	for i := range turns {
		asked, heard := strings.Count(history, fmt.Sprintf(`"text":"turn %d."`, i)), strings.Count(history,
			fmt.Sprintf(`"text":"heard turn %d."`, i))
		if asked != 1 || heard != 1 {
			t.Logf("turn %d: its message stands in history %d times, the answer %d times", i, asked, heard)
			records++
		}
	}

	saves, copies, lost := 0, 0, 0
	for _, h := range hands {
		t.Logf("%s: %d saves, %d in a conflict copy, %d lost, %d not possible", filepath.Base(h.path), h.saves,
			h.copies, len(h.lost), h.err)
		saves, copies, lost = saves+h.saves, copies+h.copies, lost+len(h.lost)
		if len(h.lost) > 0 {
			t.Errorf("%s: lost: %v", filepath.Base(h.path), h.lost)
		}
	}

	t.Logf("%v: %d saves, %d conflicts, %d lost; %d turns, %d records of the runtime lost or doubled", hostileTime(),
		saves, copies, lost, turns, records)
	if records > 0 || saves == 0 {
		t.Errorf("%d records of the runtime lost or doubled in %d saves", records, saves)
	}
}

// An edit through the API while another hand saves the file is refused with what
// stands there, never overwritten.
func TestAnEditOfAnOldVersionIsRefused(t *testing.T) {
	t.Parallel()
	o := newOps(t)
	content, hash, err := o.client.Folders().ReadFile(t.Context(), "Ops", "descriptor.json")
	if err != nil {
		t.Fatal(err)
	}

	h := hand{path: filepath.Join(o.dir, "descriptor.json")}
	h.save("meanwhile", withMember)
	err = o.client.Folders().WriteFile(t.Context(), "Ops", "descriptor.json", content, hash)
	var conflict *control.Conflict
	if !errors.As(err, &conflict) || !strings.Contains(conflict.Content, "meanwhile") || !strings.Contains(readOr(h.path), "meanwhile") {
		t.Errorf("over another's save: %v; the file is %s", err, readOr(h.path))
	}
}
