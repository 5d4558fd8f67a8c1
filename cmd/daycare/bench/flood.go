package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"daycare/engine/lazyregexp"
)

// A Flood is more than a daemon can do at once: many senders who do not wait for answers. Under a flood it
// promises that no accepted message is lost or accepted twice, that a sender that is too early learns when to try
// again, and that memory stays bounded.
type Flood struct {
	Dir, Binary   string
	Senders, Each int
	ToolBytes     int64 // printed by one tool call; 0: 10 GB
	Progress      func(string)
}

// script answers what the flood asks. The slow rule keeps an agent busy, so that
// its inbox fills.
const floodScript = `rules:
  - { contains: "print too much", round: 1, reply: [ { calls: ` +
	`[ { name: exec, arguments: { command: "head -c %d /dev/zero | tr '\\0' x", timeoutMs: 600000 } } ] } ] }
  - { tool_result: exec, reply: [ { text: "printed" } ] }
  - { contains: "slow", reply: [ { delay: 1s }, { text: "done" } ] }
  - { reply: [ { text: "ok" } ] }
`

const floodSettings = `providers:
  - {id: offline, type: scripted, options: {script: %q}}
  - {id: endless, type: openai, baseURL: %q, model: endless}
permissions: {defaults: {exec: sandbox}}
agents: {maxSpawned: 1000000}
`

// token is what marks a message; it is looked for in histories.
var token = lazyregexp.New(`\bm[a-z]\d+-\d+\b`)

// Run floods a daemon in every way, and checks what is left. An error says that a
// promise was broken; the rows say what was seen until then.
func (f Flood) Run(ctx context.Context) (rows []Row, err error) {
	work, err := os.MkdirTemp(f.Dir, "flood-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	if f.ToolBytes == 0 {
		f.ToolBytes = 10_000_000_000
	}

	model := endlessModel()
	defer model.Close()
	script := work + "/script.yaml"
	if err := os.WriteFile(script, fmt.Appendf(nil, floodScript, f.ToolBytes), 0o600); err != nil {
		return nil, err
	}

	d, err := launch(ctx, f.Binary, work, fmt.Sprintf(floodSettings, script, model.URL+"/v1"))
	if err != nil {
		return nil, err
	}
	defer func() {
		if serr := d.stop(); err == nil {
			err = serr
		}
	}()

	before, err := d.usage(ctx)
	if err != nil {
		return nil, err
	}
	rows = append(rows, Row{Name: "daemon before it, resident", Value: mib(before.RSS), Unit: "MiB", Note: before.held()})
	for _, part := range []func(context.Context, *child) ([]Row, error){f.many, f.one, f.tool, f.endless} {
		more, err := part(ctx, d)
		if rows = append(rows, more...); err != nil {
			return rows, err
		}
	}

	return f.leaks(ctx, d, before, rows)
}

func (u Usage) held() string {
	return fmt.Sprintf("%d descriptors, %d goroutines", u.FDs, u.Goroutines)
}

// many: every sender has an agent.
func (f Flood) many(ctx context.Context, d *child) ([]Row, error) {
	f.Progress(fmt.Sprintf("%d senders × %d messages, an agent each", f.Senders, f.Each))
	return f.pour(ctx, d, "a", f.Each, func(i int) string { return strconv.Itoa(i) }, "")
}

// one: all of them write to one agent, which is slow. Watchers who do not read hang
// on the daemon meanwhile.
func (f Flood) one(ctx context.Context, d *child) ([]Row, error) {
	each := max(1, f.Each/20)
	f.Progress(fmt.Sprintf("%d senders × %d messages to one slow agent, ten watchers who do not read", f.Senders, each))
	for range 10 {
		watching, err := d.http.Get("http://daycare/v1/events")
		if err != nil {
			return nil, err
		}
		defer watching.Body.Close()
	}

	return f.pour(ctx, d, "b", each, func(int) string { return "one" }, " slow")
}

// pour sends all messages of one part, each again until it is taken, and finds
// them in the histories.
func (f Flood) pour(ctx context.Context, d *child, part string, each int, channel func(int) string, more string) ([]Row, error) {
	var p poured
	begin := time.Now()
	var wg sync.WaitGroup
	for i := range f.Senders {
		wg.Go(func() {
			for j := range each {
				text := fmt.Sprintf("m%s%d-%d", part, i, j)
				p.send(ctx, d.http, map[string]string{"connector": "terminal", "userId": "flood", "channelId": "flood-" + part + channel(i),
					"text": text + more, "dedupe": text})
			}
		})
	}

	wg.Wait()
	took := time.Since(begin)
	rows := []Row{{Name: "messages accepted", Value: float64(p.accepted.Load()), Unit: "",
		Note: fmt.Sprintf("of %d, each durable; %.0f/s", f.Senders*each, float64(p.accepted.Load())/took.Seconds())},
		{Name: "  answered 429", Value: float64(p.refused.Load()), Unit: "", Note: p.said()}}
	if err := p.err(); err != nil {
		return rows, err
	}
	if err := d.settle(ctx); err != nil {
		return rows, err
	}

	settled := time.Since(begin)
	seen, err := d.count(token)
	if err != nil {
		return rows, err
	}

	missing, twice := 0, 0
	for i := range f.Senders {
		for j := range each {
			switch n := seen[fmt.Sprintf("m%s%d-%d", part, i, j)]; {
			case n == 0:
				missing++
			case n > 1:
				twice++
			}
		}
	}

	u, err := d.usage(ctx)
	rows = append(rows, Row{Name: "  missing", Value: float64(missing),
		Note: fmt.Sprintf("all worked off after %s", settled.Round(10*time.Millisecond))},
		Row{Name: "  taken twice", Value: float64(twice)},
		Row{Name: "  resident, at most", Value: mib(u.Peak), Unit: "MiB", Note: fmt.Sprintf("%.0f now; %s", mib(u.RSS), u.held())})
	if missing+twice > 0 {
		return rows, fmt.Errorf("%d messages are missing and %d were taken twice", missing, twice)
	}
	if p.refused.Load() > 0 && p.unsaid.Load() > 0 {
		return rows, fmt.Errorf("%d refusals did not say when to come again", p.unsaid.Load())
	}

	return rows, err
}

// poured is the outcome of the messages of one part.
type poured struct {
	accepted, refused, unsaid atomic.Int64
	after                     atomic.Int64 // the newest Retry-After, seconds
	mu                        sync.Mutex
	first                     error
}

func (p *poured) err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.first
}

func (p *poured) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.first == nil {
		p.first = err
	}
}

func (p *poured) said() string {
	if p.refused.Load() == 0 {
		return ""
	}
	return fmt.Sprintf("with Retry-After: %d, which was heeded", p.after.Load())
}

// send offers a message until it is taken.
func (p *poured) send(ctx context.Context, client *http.Client, m map[string]string) {
	body, err := json.Marshal(m)
	for err == nil && p.err() == nil {
		req, rerr := http.NewRequestWithContext(ctx, http.MethodPost, "http://daycare/v1/messages", bytes.NewReader(body))
		if err = rerr; err != nil {
			break
		}
		req.Header.Set("Content-Type", "application/json")
		resp, rerr := client.Do(req)
		if err = rerr; err != nil {
			break
		}

		answer, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
		resp.Body.Close()
		switch {
		case resp.StatusCode < 300:
			p.accepted.Add(1)
			return
		case resp.StatusCode != http.StatusTooManyRequests:
			err = fmt.Errorf("message refused: %s: %s", resp.Status, bytes.TrimSpace(answer))
			continue
		}

		p.refused.Add(1)
		seconds, aerr := strconv.Atoi(resp.Header.Get("Retry-After"))
		if aerr != nil || seconds < 1 {
			p.unsaid.Add(1)
			seconds = 1
		}

		p.after.Store(int64(seconds))
		select {
		case <-time.After(time.Duration(seconds) * time.Second):
		case <-ctx.Done():
			err = ctx.Err()
		}
	}

	if err != nil {
		p.fail(err)
	}
}
