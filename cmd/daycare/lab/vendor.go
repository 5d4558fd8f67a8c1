package lab

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"daycare/agents/providers"
	"daycare/cmd/daycare/daemon"
	"daycare/cmd/daycare/models"
	"daycare/cmd/daycare/plugins"
	"daycare/cmd/daycare/term"
	"daycare/engine/config"
	"daycare/engine/disk"
	"daycare/engine/fault"
	"daycare/engine/finding"
	"daycare/engine/record"
)

const (
	maxHanded    = 10_000    // lines in one batch of a vendor
	maxHandedIn  = 100 << 20 // and their bytes
	maxRounds    = 3         // how often a run hands in lines for which nothing was done
	lookFirst    = time.Second
	lookLongest  = time.Minute
	handedPast   = time.Minute // by how much the clock of a vendor may be behind
	handedSuffix = ".handed.jsonl"
)

// A handed line is one of the file beside the results, about one batch of a vendor: that it is going to be handed in, its
// id there, or that it is over.
type handed struct {
	Key   string     `json:"key"`
	At    disk.Stamp `json:"at"`
	Lines []string   `json:"lines,omitempty"` // ids, of a batch that is going to be handed in
	Batch string     `json:"batch,omitempty"` // the vendor's id
	Over  string     `json:"over,omitempty"`  // how it ended
}

// handedIn are the batches of a vendor that were handed in, by key.
type handedIn struct {
	log  *disk.Log
	open map[string]*handed
	keys []string // of those, in order
}

func openHanded(vol *disk.Volume, path string) (*handedIn, error) {
	log, _, err := vol.OpenLog(path, disk.LogOptions{Name: "batch", Valid: json.Valid})
	if err != nil {
		return nil, fmt.Errorf("open the list of batches: %w", err)
	}
	h := &handedIn{log: log, open: map[string]*handed{}}
	data, err := contents(log)
	if err != nil {
		log.Close()
		return nil, fmt.Errorf("read the list of batches: %w", err)
	}
	n := 0
	for text := range bytes.Lines(data) {
		n++
		var one handed
		if err := json.Unmarshal(text, &one); err != nil || one.Key == "" {
			log.Close()
			return nil, finding.Finding{ID: "batch-handed", Severity: finding.Error, File: path, Line: n, Reason: "not a batch of a vendor",
				Remedy: "remove this line; its batch may then be paid for twice"}
		}
		h.add(one)
	}

	return h, nil
}

func (h *handedIn) add(one handed) {
	was := h.open[one.Key]
	switch {
	case one.Over != "":
		delete(h.open, one.Key)
	case was == nil:
		h.open[one.Key] = &one
		h.keys = append(h.keys, one.Key)
	default:
		was.Batch = one.Batch
	}
}

// write adds a line, durably.
func (h *handedIn) write(one handed) error {
	one.At = disk.StampOf(time.Now())
	if err := appendLine(h.log, one); err != nil {
		return fmt.Errorf("write the list of batches: %w", err)
	}
	h.add(one)

	return nil
}

// A vending is a batch that a vendor answers.
type vending struct {
	app     *term.App
	later   *providers.Later
	chain   *models.Chain
	base    providers.Request // what all lines have in common
	results *ledger
	handed  *handedIn
	lines   map[string]question
	failed  int
	now     int // answered in this run
}

// vendorOf is the provider that answers as an agent, if its settings say that it answers batches.
func (l *laboratory) vendorOf(who subject) (config.Provider, bool) {
	p, err := l.chain.CheckChoice(who.model)
	p.Model = cmp.Or(who.model.Model, p.Model)
	return p, err == nil && p.Batch
}

// vend has a vendor answer the lines of a batch, and waits for it.
func vend(ctx context.Context, c *term.App, l *laboratory, who subject, p config.Provider, questions []question, results *ledger,
	path string) (err error) {
	v := &vending{app: c, chain: l.chain, results: results, lines: map[string]question{}}
	for _, q := range questions {
		v.lines[q.ID] = q
	}
	made, err := plugins.NewProvider(l.suite.at, p, p.APIKey.Reveal)
	if err == nil {
		v.later, err = providers.NewLater(ctx, made)
	}
	if err != nil {
		return &term.Problem{Code: fault.ExitUsage, Err: err, Do: "remove batch from the provider in the settings, or give --now"}
	}
	if v.base, err = baseRequest(ctx, c, l, who, p); err != nil {
		return err
	}
	if v.handed, err = openHanded(results.vol, path); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.handed.log.Close()) }()

	if err := v.recall(ctx); err != nil {
		return err
	}
	for range maxRounds {
		if err := v.collect(ctx); err != nil {
			return err
		}
		waiting := v.waiting(questions)
		if len(waiting) == 0 {
			break
		}
		if err := v.handIn(ctx, waiting); err != nil {
			return err
		}
	}
	if err := v.collect(ctx); err != nil {
		return err
	}

	return v.report(len(questions), len(v.waiting(questions)))
}

// baseRequest is a request without its question.
func baseRequest(ctx context.Context, c *term.App, l *laboratory, who subject, p config.Provider) (r providers.Request, err error) {
	requests, err := daemon.OpenRequests(ctx, l.suite.at, c.Warn)
	if err != nil {
		return r, err
	}
	system := requests.NewSystem()
	if who.id != "" {
		for _, meta := range requests.Agents() {
			if meta.ID == who.id {
				if system, err = requests.System(meta, ""); err != nil {
					return r, err
				}
			}
		}
	}

	return providers.Request{Model: p.Model, System: system, Temperature: who.model.Temperature, MaxTokens: who.model.MaxTokens,
		Thinking: who.model.Thinking, Agent: "batch", Session: "batch"}, nil
}

// name is the id of a line in a batch, which says whose batch it is.
func (v *vending) name(key, line string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(key+"\x00"+line)))[:40]
}

// waiting are the lines that have no answer and are in no batch.
func (v *vending) waiting(questions []question) (list []question) {
	busy := map[string]bool{}
	for _, one := range v.handed.open {
		for _, id := range one.Lines {
			busy[id] = true
		}
	}
	for _, q := range questions {
		if _, done := v.results.done[q.ID]; !done && !busy[q.ID] {
			list = append(list, q)
		}
	}

	return list
}

// handIn hands lines in, in as many batches as it takes. That it is going to is on disk before.
func (v *vending) handIn(ctx context.Context, list []question) error {
	for len(list) > 0 {
		one := handed{Key: rand.Text()}
		var items []providers.LaterItem
		size := 0
		for _, q := range list {
			req := v.base
			req.Messages = []*providers.Message{{Role: providers.User, Parts: []providers.Part{providers.Text{Text: q.Prompt}}}}
			item, err := v.later.Item(ctx, v.name(one.Key, q.ID), &req)
			if err != nil {
				return fmt.Errorf("line %d: %w", q.line, err)
			}
			if size += len(item.Body); len(items) == maxHanded || len(items) > 0 && size > maxHandedIn {
				break
			}
			items, one.Lines = append(items, item), append(one.Lines, q.ID)
		}
		list = list[len(items):]
		if err := v.handed.write(one); err != nil {
			return err
		}
		s, err := v.later.Submit(ctx, one.Key, items)
		if err != nil {
			return fmt.Errorf("submit a batch: %w", err) // it may have arrived: recall looks for it
		}
		if err := v.handed.write(handed{Key: one.Key, Batch: s.ID}); err != nil {
			return err
		}
		v.app.Note("%s submitted as %s", term.Plural(len(items), "line was", "lines were"), s.ID)
	}

	return nil
}

// recall looks for batches that a kill kept from being noted: those that arrived are continued, the others were never there.
func (v *vending) recall(ctx context.Context) error {
	taken := map[string]bool{}
	for _, one := range v.handed.open {
		taken[one.Batch] = true
	}
	for _, key := range v.handed.keys {
		one := v.handed.open[key]
		if one == nil || one.Batch != "" {
			continue
		}
		found, err := v.later.Find(ctx, key, one.At.Add(-handedPast), len(one.Lines))
		if err != nil {
			return fmt.Errorf("find an interrupted batch: %w", err)
		}
		mine := ""
		for _, s := range found {
			if taken[s.ID] {
				continue
			}
			ours := s.Key == key
			if !ours {
				if ours, err = v.ours(ctx, *one, s); err != nil {
					return err
				}
			}
			if ours {
				mine = s.ID
				break
			}
		}
		next := handed{Key: key, Batch: mine}
		if mine == "" {
			next.Over = "never arrived"
		}
		if err := v.handed.write(next); err != nil {
			return err
		}
	}

	return nil
}

// ours reports whether a batch is one that was handed in, by the ids in its results: it is waited for.
func (v *vending) ours(ctx context.Context, one handed, s providers.LaterState) (ours bool, err error) {
	if s, err = v.wait(ctx, s.ID); err != nil {
		return false, err
	}
	names := map[string]bool{}
	for _, id := range one.Lines {
		names[v.name(one.Key, id)] = true
	}
	err = v.later.Results(ctx, s, func(r providers.LaterResult) error {
		ours = ours || names[r.ID]
		return nil
	})

	return ours, err
}

// wait waits until a batch has ended.
func (v *vending) wait(ctx context.Context, id string) (s providers.LaterState, err error) {
	last := -1
	for pause := lookFirst; ; pause = min(2*pause, lookLongest) {
		s, err = v.later.Look(ctx, id)
		if f := (*providers.Failure)(nil); err != nil && !(errors.As(err, &f) && f.Retryable()) {
			return s, fmt.Errorf("check batch %s: %w", id, err)
		}
		if err == nil && s.Ended {
			return s, nil
		}
		if err == nil && s.Done != last {
			last = s.Done
			v.app.Note("%s: %d of %d", id, s.Done, s.Total)
		}
		select {
		case <-ctx.Done():
			return s, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// collect waits for all batches that were handed in, and keeps their results.
func (v *vending) collect(ctx context.Context) error {
	for _, key := range v.handed.keys {
		one := v.handed.open[key]
		if one == nil {
			continue
		}
		s, err := v.wait(ctx, one.Batch)
		if err != nil {
			return err
		}
		over := handed{Key: key, Over: "ended"}
		if s.Wrong != "" {
			over.Over = "failed"
		}
		ids := map[string]string{}
		for _, id := range one.Lines {
			ids[v.name(key, id)] = id
		}
		err = v.later.Results(ctx, s, func(r providers.LaterResult) error { return v.keep(ids[r.ID], r) })
		if err == nil {
			err = v.handed.write(over)
		}
		if err == nil && s.Wrong != "" {
			err = fmt.Errorf("batch %s failed, and none of its lines was answered: %s", s.ID, s.Wrong)
		}
		if err != nil {
			return err
		}
	}

	return nil
}

// keep writes what became of a line, unless nothing was done for it, or it is there already.
func (v *vending) keep(id string, r providers.LaterResult) error {
	q, known := v.lines[id]
	if _, done := v.results.done[id]; done || r.Again || id == "" {
		return nil
	}
	if !known {
		q = question{ID: id} // the line was removed from the file since
	}
	a := answered{ID: id, Line: q.line, Prompt: q.Prompt, Reason: record.ReasonError, Rounds: 1}
	if r.Err != nil {
		a.Error = r.Err.Error()
		v.failed++
	} else {
		u := r.Answer.Usage
		a.Answer, a.Reason = r.Answer.Text, done
		a.Input, a.Output = u.Input+u.CacheRead+u.CacheWrite, u.Output
		a.Cost = v.chain.Price(r.Answer.Provider, cmp.Or(r.Answer.Model, v.base.Model), u) * providers.LaterShare
	}
	v.now++

	return v.results.write(a)
}

func (v *vending) report(lines, left int) error {
	if v.app.JSON {
		if err := v.app.PrintJSON(map[string]any{"lines": lines, "answered": len(v.results.done), "now": v.now, "failed": v.failed,
			"left": left, "cost": v.results.cost}); err != nil {
			return err
		}
	} else {
		v.app.Print("%d of %s answered, %d now, %d failed, %s\n", len(v.results.done), term.Plural(lines, "line", "lines"), v.now,
			v.failed, term.Money(v.results.cost))
	}
	switch {
	case left > 0:
		err := fmt.Errorf("the vendor did not answer %s: expired, canceled, or an error on its side", term.Plural(left, "line", "lines"))
		return &term.Problem{Code: fault.ExitFailure, Err: err, Do: "run it again to submit them again"}
	case v.failed > 0:
		return &term.Problem{Code: fault.ExitFailure, Err: term.ErrSilent}
	}

	return nil
}
