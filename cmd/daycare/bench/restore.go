package bench

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/record"
	"daycare/engine/workspace"
)

// Restored is what an agent with a long past costs after a start.
type Restored struct {
	Ready time.Duration // of the daemon
	First time.Duration // from a message to its answer, which is the first that needs the past
	Again time.Duration // the next one, with the past in memory
	RSS   int64
}

// Restore starts the daemon on one agent whose history.jsonl is that long, and asks
// the agent. The history is a real one in a single file, which daycare itself lets
// grow to about 8 MiB: turns, then a summary of them, then ten turns more.
func Restore(ctx context.Context, binary, dir string, historyBytes int64) (r Restored, err error) {
	work, err := os.MkdirTemp(dir, "bench-restore-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(work)
	id, err := populate(ctx, work, 1, 0)
	if err == nil {
		err = lengthen(work, id, historyBytes)
	}
	if err != nil {
		return r, fmt.Errorf("prepare a history of %d bytes: %w", historyBytes, err)
	}

	begin := time.Now()
	d, err := launch(ctx, binary, work, "providers: [{id: offline, type: scripted}]\n")
	if err != nil {
		return r, err
	}
	defer func() {
		if serr := d.stop(); err == nil {
			err = serr
		}
	}()

	r.Ready = time.Since(begin)
	for _, took := range []*time.Duration{&r.First, &r.Again} {
		at := time.Now()
		o, err := d.client.Stream(ctx, id, control.Message{Text: "hello"}, func(control.RawEvent) {})
		if err != nil || o.Reason != "done" {
			return r, fmt.Errorf("ask an agent with %d bytes of history: %s: %w", historyBytes, o.Reason, err)
		}
		*took = time.Since(at)
	}

	u, err := d.usage(ctx)
	r.RSS = u.RSS
	return r, err
}

// lengthen makes the history of an agent that long, as its own work would.
func lengthen(work, id string, bytes int64) error {
	root := workspace.At(work).Data
	dir, vol := filepath.Join(root, "agents", id), disk.NewVolume(root)
	h, _, err := record.Open(vol, dir, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer h.Close()
	said := strings.Repeat("What was said in this turn, at some length. ", 40)
	path, n, last := filepath.Join(dir, "history.jsonl"), 0, int64(0)
	turn := func() error {
		n++
		t, item := fmt.Sprintf("turn%020d", n), fmt.Sprintf("item%020d", n)
		entries, err := h.Append(&record.TurnBegin{Turn: t, Items: []string{item}, Attempt: 1}, &record.User{Item: item, Text: said},
			&record.Assistant{Turn: t, Text: said, Finish: record.FinishEndTurn, Provider: "offline", Model: "scripted"},
			&record.TurnEnd{Turn: t, Items: []string{item}, Reason: record.ReasonDone})
		if err == nil {
			last = entries[len(entries)-1].Seq
		}

		return err
	}
	for {
		for range 100 {
			if err := turn(); err != nil {
				return err
			}
		}

		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if info.Size() >= bytes {
			break
		}
	}

	if _, err := h.Append(&record.Summary{Text: "Much was said.", From: 1, KeptFrom: last + 1}); err != nil {
		return err
	}
	for range 10 {
		if err := turn(); err != nil {
			return err
		}
	}

	if err := h.Barrier(); err != nil {
		return err
	}

	return record.UpdateState(vol, dir, func(s *record.State) { s.Seq = last })
}

// restores is the part of the suite.
func (s Suite) restores(ctx context.Context, c *Curves) (rows []Row, err error) {
	for _, size := range []int64{1 << 20, 10 << 20, 100 << 20} {
		s.Progress(fmt.Sprintf("an agent with %d MiB of history", size>>20))
		r, err := Restore(ctx, s.Binary, s.Dir, size)
		if err != nil {
			return rows, err
		}
		name := fmt.Sprintf("first answer after a start, %d MiB of history", size>>20)
		rows = append(rows, Against(name, ms(r.First), "ms", ms(r.Again),
			fmt.Sprintf("limit: the answer after it; ready in %s, %.0f MiB resident", brief(r.Ready), mib(r.RSS))))
		c.Restore.Points = append(c.Restore.Points, Point{float64(size >> 20), ms(r.First)})
	}

	return rows, nil
}
