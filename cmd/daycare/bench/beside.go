package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/workspace"
)

// Beside is what one agent costs with many others on disk, measured from outside at a
// daemon. Nothing done for one agent looks at all, so the rows of one kind should be the
// same.
type Beside struct {
	Binary   string
	Dir      string
	Others   []int // how many other agents there are
	Each     int   // how often to do each thing
	Progress func(string)
}

// Run measures a turn, an agent made by API and a chat's first message.
func (b Beside) Run(ctx context.Context) (rows []Row, err error) {
	for _, n := range b.Others {
		b.Progress(fmt.Sprintf("one agent beside %d others", n))
		more, err := b.with(ctx, n)
		rows = append(rows, more...)
		if err != nil {
			return rows, fmt.Errorf("beside %d agents: %w", n, err)
		}
	}

	slices.SortStableFunc(rows, func(x, y Row) int { return strings.Compare(kind(x), kind(y)) })

	return rows, nil
}

// kind is the name of a row without the number of agents.
func kind(r Row) string {
	name, _, _ := strings.Cut(r.Name, " beside ")
	return name
}

// with measures beside so many others.
func (b Beside) with(ctx context.Context, others int) (rows []Row, err error) {
	work, err := os.MkdirTemp(b.Dir, "bench-beside-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	first, err := populate(ctx, work, others+1, 0)
	if err == nil {
		err = befriend(work, first)
	}
	if err != nil {
		return nil, fmt.Errorf("prepare %d agents: %w", others, err)
	}

	d, err := launch(ctx, b.Binary, work, "providers: [{id: offline, type: scripted}]\nagents: { maxSpawned: 0 }\n")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	if err := settle(ctx, d.cmd.Process.Pid); err != nil {
		return nil, err
	}

	ask := func(ref string, m control.Message) error {
		o, err := d.client.Stream(ctx, ref, m, func(control.RawEvent) {})
		if err == nil && o.Reason != "done" {
			err = fmt.Errorf("the turn ended with %s", o.Reason)
		}
		return err
	}
	for _, op := range []struct {
		name string
		do   func(i int) error
	}{
		{"turn", func(int) error { return ask(first, control.Message{Text: "hello"}) }},
		{"new agent by API", func(i int) error {
			_, err := d.client.Create(ctx, control.NewAgent{Name: fmt.Sprint("made ", i)})
			return err
		}},
		{"first message of a chat", func(i int) error {
			return ask("", control.Message{Text: "hello", Connector: "bench", ChannelID: fmt.Sprint("new ", i), UserID: "u"})
		}},
	} {
		row, err := b.measure(d, fmt.Sprintf("%s beside %d agents", op.name, others), op.do)
		if err != nil {
			return rows, fmt.Errorf("%s: %w", op.name, err)
		}
		rows = append(rows, row)
	}

	return rows, nil
}

// measure does something again and again. The least time says more than the others on a
// machine that does something else too, and so does the processor time of the daemon.
func (b Beside) measure(d *child, name string, do func(i int) error) (Row, error) {
	if err := do(-1); err != nil { // what is read once
		return Row{}, err
	}
	pid := d.cmd.Process.Pid
	before, err := cpuTime(pid)
	if err != nil {
		return Row{}, err
	}

	var all []time.Duration
	for i := range b.Each {
		at := time.Now()
		if err := do(i); err != nil {
			return Row{}, err
		}
		all = append(all, time.Since(at))
	}

	after, err := cpuTime(pid)
	if err != nil {
		return Row{}, err
	}
	slices.Sort(all)

	return Row{Name: name, Value: ms(quantile(all, 0.5)), Unit: "ms",
		Note: fmt.Sprintf("least %s; processor %s each", brief(all[0]), brief((after-before)/time.Duration(b.Each)))}, nil
}

// befriend makes every tenth agent a permanent one, of which all others know, but not the
// one that is talked to.
func befriend(work, first string) error {
	dirs, err := disk.Glob(filepath.Join(workspace.At(work).Data, "agents"), "*/descriptor.json")
	if err != nil {
		return err
	}

	for i, path := range dirs {
		id := filepath.Base(filepath.Dir(path))
		if i%10 != 5 || id == first {
			continue
		}
		text := fmt.Sprintf(`{"type":"permanent","id":"%s","name":"colleague %d","description":"knows about that"}`, id, i)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}

	return nil
}
