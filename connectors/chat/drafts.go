package chat

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"sync"
	"time"

	"daycare/engine/event"
	"daycare/engine/message"
)

const (
	draftEvery = 3 * time.Second // between two edits of a draft: Telegram takes twenty a minute in a group
	draftFrom  = 40              // bytes of an answer, before which none is shown
	draftMost  = 32 << 10        // bytes of an answer, after which no more is kept: one message shows less
	draftsFile = "drafts.json"   // what was posted of drafts, as a JSON object by agent
)

// An Items is an Agents that knows for which message a turn works.
type Items interface {
	Item(ctx context.Context, agent, item string) (event.Posted, error)
}

// drafts show answers while they are written: as a message that is edited, and in the end is the
// answer. They are hints: what a message says when daycare dies is corrected by the answer.
type drafts struct {
	o     Options
	host  Host
	who   *people
	voice voice
	shows sync.WaitGroup // edits in progress

	mu  sync.Mutex
	all map[string]*draft // by agent
}

// A draft is an answer that is being written.
type draft struct {
	To     message.Address `json:"to"`
	Remote string          `json:"remote"`         // the platform's id of the message
	Done   string          `json:"done,omitempty"` // the id of the answer that it became

	replyTo string
	text    []byte
	shown   string
	next    time.Time  // when it may be edited again
	busy    bool       // it is being edited
	over    bool       // no more edits
	calls   sync.Mutex // held while the platform is called
}

// load reads what the process before posted.
func (ds *drafts) load() {
	if ds.host.Hints == nil || ds.all != nil {
		return
	}
	ds.all = map[string]*draft{}
	data, err := ds.host.Hints.Load(ds.o.ID, draftsFile)
	if err == nil {
		err = json.Unmarshal(data, &ds.all)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		ds.voice.log.Warn("unfinished answers of the last run stay as they are", "err", err)
	}
	for agent, d := range ds.all {
		if d == nil {
			delete(ds.all, agent)
			continue
		}
		d.over = true
	}
}

// save keeps what was posted. mu is held.
func (ds *drafts) save() {
	if ds.host.Hints == nil {
		return
	}
	posted := map[string]*draft{}
	for agent, d := range ds.all {
		if d.Remote != "" {
			posted[agent] = d
		}
	}
	data, err := json.MarshalIndent(posted, "", "  ")
	if err == nil {
		err = ds.host.Hints.Save(ds.o.ID, draftsFile, append(data, '\n'))
	}
	if err != nil {
		ds.voice.log.Warn("cannot save which answers are shown unfinished", "err", err)
	}
}

// happened takes an event of an agent.
func (ds *drafts) happened(ctx context.Context, e event.Event) {
	editor, ok := ds.voice.platform.(Editor)
	if !ok || !ds.who.talk().Stream {
		return
	}
	switch body := e.Body.(type) {
	case event.Started:
		ds.begin(ctx, e.Agent, body.Items)
	case event.Attempt:
		if body.Discard {
			ds.write(ctx, editor, e.Agent, event.Delta{})
		}
	case event.Delta:
		if e.Type == event.MessageDelta {
			ds.write(ctx, editor, e.Agent, body)
		}
	case event.Finished:
		if strings.TrimSpace(body.Text) == "" {
			ds.end(ctx, editor, e.Agent)
		}
	}
}

// begin notes where the answer of a turn will go, if someone asked for it here.
func (ds *drafts) begin(ctx context.Context, agent string, items []string) {
	known, ok := ds.host.Agents.(Items)
	if !ok || len(items) == 0 {
		return
	}
	p, err := known.Item(ctx, agent, items[len(items)-1])
	if err != nil || p.MessageID == "" {
		return
	}
	to, ok := ds.who.home(agent)
	if r := p.Route; r != nil {
		to, ok = message.Address{Connector: r.Connector, ChannelID: r.ChannelID, UserID: r.UserID, ThreadID: r.ThreadID}, true
	}
	if !ok || to.Connector != ds.o.ID {
		return
	}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ds.load()
	made := &draft{To: to, replyTo: p.MessageID}
	if before := ds.all[agent]; before != nil && before.Done == "" && before.To == to {
		made.Remote = before.Remote // the turn begins again
	}
	ds.all[agent] = made
}

// write adds to a draft, and shows it if it may be edited again.
func (ds *drafts) write(ctx context.Context, editor Editor, agent string, piece event.Delta) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	d := ds.all[agent]
	if d == nil || d.over || piece.Offset > min(len(d.text), draftMost) { // what is missing comes with the answer
		return
	}
	d.text = append(d.text[:piece.Offset], piece.Text...)
	if now := time.Now(); !d.busy && len(d.text) >= draftFrom && !now.Before(d.next) {
		d.busy, d.next = true, now.Add(draftEvery)
		ds.shows.Go(func() { ds.show(ctx, editor, agent, d) })
	}
}

// show posts or edits the message of a draft.
func (ds *drafts) show(ctx context.Context, editor Editor, agent string, d *draft) {
	d.calls.Lock()
	defer d.calls.Unlock()
	ds.mu.Lock()
	text, over := ds.fitting(string(d.text))+" …", d.over
	ds.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, sayTime)
	defer cancel()
	var err error
	remote := d.Remote
	switch {
	case over || text == d.shown:
	case remote == "":
		remote, err = editor.Post(ctx, d.To, "", d.replyTo, text)
	default:
		err = editor.Edit(ctx, d.To, remote, text)
	}

	ds.mu.Lock()
	defer ds.mu.Unlock()
	d.busy, d.shown = false, text
	if err != nil {
		ds.voice.log.Debug("unfinished answer not shown", "err", err)
		d.next = time.Now().Add(10 * draftEvery)
		return
	}
	if d.Remote != remote {
		d.Remote = remote
		ds.save()
	}
}

// fitting is as much of a text as one message takes.
func (ds *drafts) fitting(text string) string {
	if sp, ok := ds.voice.platform.(interface{ Split(string) []string }); ok {
		if parts := sp.Split(text); len(parts) > 0 {
			return parts[0]
		}
	}

	return text
}

// end closes the draft of a turn that has no answer: what was written stays, and says so.
func (ds *drafts) end(ctx context.Context, editor Editor, agent string) {
	d := ds.close(agent)
	if d == nil {
		return
	}
	ds.shows.Go(func() {
		d.calls.Lock()
		defer d.calls.Unlock()
		defer ds.forget(agent, d)
		if d.Remote == "" {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, sayTime)
		defer cancel()
		if err := editor.Edit(ctx, d.To, d.Remote, ds.fitting(string(d.text))+"\n\n"+ds.voice.t("(not finished)")); err != nil {
			ds.voice.log.Debug("unfinished answer not closed", "err", err)
		}
	})
}

// close ends the edits of a draft, which may be nil.
func (ds *drafts) close(agent string) *draft {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ds.load()
	d := ds.all[agent]
	if d != nil {
		d.over = true
	}

	return d
}

// became notes which answer a draft is now: another try of it changes the same message.
func (ds *drafts) became(d *draft, out string) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if d.Done != out {
		d.Done = out
		ds.save()
	}
}

func (ds *drafts) forget(agent string, d *draft) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if ds.all[agent] == d {
		delete(ds.all, agent)
		if d.Remote != "" {
			ds.save()
		}
	}
}

// Finish turns the message that showed an unfinished answer into the answer; ok is false if there is no such
// message, so that the answer must be sent. The caller then sends what else the part has.
func (d *Desk) Finish(ctx context.Context, out message.Outgoing) (remote string, ok bool, err error) {
	editor, can := d.voice.platform.(Editor)
	if !can || out.Part > 0 || out.Agent == "" {
		return "", false, nil
	}
	shown := d.drafts.close(out.Agent)
	if shown == nil {
		return "", false, nil
	}
	shown.calls.Lock()
	defer shown.calls.Unlock()
	elsewhere := shown.To.ChannelID != out.To.ChannelID || shown.To.ThreadID != out.To.ThreadID
	if shown.Remote == "" || elsewhere || shown.Done != "" && shown.Done != out.ID {
		return "", false, nil
	}

	err = editor.Edit(ctx, shown.To, shown.Remote, out.Text)
	var gone *message.NotSent
	switch {
	case errors.As(err, &gone) && gone.Final: // someone deleted it
		d.drafts.forget(out.Agent, shown)
		return "", false, nil
	case err != nil:
		return "", false, err
	}
	d.drafts.became(shown, out.ID)

	return shown.Remote, true, nil
}
