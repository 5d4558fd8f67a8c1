package agents

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nrednav/cuid2"

	"daycare/engine/crash"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/tools"
)

// control works on an item that changes the agent rather than speaks to it. Its
// record closes it.
func (a *agent) control(ctx context.Context, id string) error {
	items, err := a.claim(id)
	if err != nil || len(items) == 0 {
		return err
	}
	switch it := items[0]; it.Kind {
	case message.Reset:
		return a.reset(it.ID, "user", it.Text)
	case message.Permission:
		return a.decided(ctx, it)
	case message.Compact:
		return a.compact(ctx, it)
	case message.Rewind:
		return a.rewind(it)
	case message.Mark:
		return a.close(it, &record.Mark{Name: it.Text, Item: it.ID})
	default:
		return fmt.Errorf("item %s: unknown kind %q", it.ID, it.Kind)
	}
}

// reset ends the session: id and files stay, the context is empty.
func (a *agent) reset(item, reason, text string) error {
	if _, err := a.append(&record.Reset{Session: cuid2.Generate(), V: record.Version,
		Item: item, Reason: reason, Message: text}); err != nil {
		return err
	}
	if err := a.barrier(); err != nil {
		return err
	}
	if item != "" {
		if err := a.done(item); err != nil {
			return err
		}
	}
	if _, err := a.history.Rotate(); err != nil {
		return err
	}
	a.emit(event.AgentReset, "", event.Reason{Reason: reason})
	return a.cacheState()
}

// decided records a person's answer to a request of this agent. The decision is
// true from here on; a turn follows in which the model hears of it.
func (a *agent) decided(ctx context.Context, it inbox.Item) error {
	if crash.Bug("denyignored") && it.Decision == string(permission.Deny) {
		it.Decision = string(permission.Once)
	}
	if access := rightGiven(it); access != nil {
		a.giveFolders(access)
	}
	if err := a.raise(ctx, it); err != nil {
		return a.postpone(it, err)
	}
	if change := a.change(it); change != nil {
		if err := a.saveState(change); err != nil {
			return a.postpone(it, err)
		}
	}
	a.stored(it)
	if _, err := a.append(&record.Permission{Token: it.Token, Item: it.ID, Event: it.Decision, Tag: it.Tag,
		By: it.By, SHA256: it.SHA256, Request: it.Text, Silent: it.Silent}); err != nil {
		return err
	}
	if err := a.barrier(); err != nil {
		return err
	}
	switch permission.Decision(it.Decision) {
	case permission.Profiled:
		a.narrowed()
		return a.done(it.ID)
	case permission.Revoked:
		a.narrowed()
		a.emit(event.PermissionRevoked, "", event.Asked{Token: it.Token, Tag: it.Tag, By: it.By})
		return a.done(it.ID)
	case permission.Always, permission.Prefix:
		a.emit(event.PermissionGranted, "", event.Asked{Token: it.Token, Tag: it.Tag, By: it.By})
	}
	if err := a.conclude(it); err != nil {
		return err
	}
	if !it.Silent {
		a.Stage.Show(event.Thinking, "") // the turn that follows is already owed
	}
	return a.done(it.ID)
}

// narrowed ends what runs by a right that was taken back.
func (a *agent) narrowed() {
	now, err := a.access()
	if err != nil { // whoever took the right back has ended them already
		a.log.Warn("what runs by a right that was taken back is not looked at", "err", err)
		return
	}
	a.Jobs.Narrowed(now)
}

// conclude does what follows from a decision that is in history: who oversees the agent
// is told, and the request leaves the queue. It may be done again after a crash.
func (a *agent) conclude(it inbox.Item) error {
	switch permission.Decision(it.Decision) {
	case permission.Revoked, permission.Used, permission.Profiled:
		return nil // no answer to a request
	}
	a.noteDecision(it)
	if a.Permits == nil {
		return nil
	}
	_, err := a.Permits.Settle(it.Token, permission.Decision(it.Decision), it.By, it.At)
	if err != nil && !errors.Is(err, permission.ErrUnknown) {
		return fmt.Errorf("settle request: %w", err)
	}
	return nil
}

// permit decides whether a call may run. grant is the once approval that it uses
// up; refused is the result that the model reads instead.
func (a *agent) permit(t *turn, p *prepared) (grant string, refused *tools.Result, err error) {
	if refused := refusedBy(*p); refused != nil {
		return "", refused, nil
	}
	need, err := needs(*p)
	if err != nil {
		r := tools.Errorf("%v", err)
		return "", &r, nil
	}
	if need == nil {
		return "", nil, nil
	}
	if access, err := permission.Parse(need.Tag); err == nil && !need.AskAlways && p.call.Access.Allows(access) {
		return "", nil, nil
	}
	sha := need.SHA256(a.ID)
	for _, g := range p.call.Access.Grants {
		if g.SHA256 == sha && !(outside(*need) && given(g, p.sources)) {
			p.call.Approved = need.Tag
			return "", nil, nil
		}
	}
	need.Sources = texts(p.sources)
	ob := a.history.Obligations()
	for _, o := range ob.Once {
		if o.SHA256 == sha {
			p.call.Approved = need.Tag
			return o.Token, nil, nil
		}
	}
	if ob.Turn != nil { // this very call, run again after a death
		for _, c := range ob.Turn.Calls {
			if c.Call.ID == p.call.ID && c.Grant.SHA256 == sha {
				p.call.Approved = need.Tag
				return c.Grant.Token, nil, nil
			}
		}
	}
	t.reads = p.call.Access.Profile == permission.ReadOnly
	refused, err = a.request(t, *need, sha)
	return "", refused, err
}

// request asks a person, without waiting: the decision arrives as an item.
func (a *agent) request(t *turn, need permission.Request, sha string) (*tools.Result, error) {
	if t.reads {
		return &tools.Result{Status: tools.Denied,
			Text: "denied: " + need.Tag + " needs an approval, and this agent only reads (profile read-only): nobody is asked"}, nil
	}
	access, _ := permission.Parse(need.Tag)
	if _, exec := access.(permission.Exec); exec && a.Settings.ExecDenied || a.Permits == nil {
		return &tools.Result{Status: tools.Denied,
			Text: "denied: " + need.Tag + " is switched off in the settings, and nobody is asked"}, nil
	}
	if no := a.answered(sha, permission.Deny); no != nil {
		return &tools.Result{Status: tools.Denied,
			Text: "denied: " + no.By + " said no to exactly this. Do not ask again until a person writes to you; go on " +
				"without it, or say that you cannot."}, nil
	}
	token, err := a.askOnce(t, need, sha)
	if errors.Is(err, permission.ErrTag) { // nobody could read what they allow
		r := tools.Errorf("this cannot be asked for: %v", err)
		return &r, nil
	}
	if err != nil {
		return nil, err
	}
	return needsApproval(token), nil
}

// askOnce puts a request into the queue, if it does not wait there or was not answered
// just now, and returns its token. The turn waits for the answer.
func (a *agent) askOnce(t *turn, need permission.Request, sha string) (token string, err error) {
	pending, waits := a.Permits.Find(a.ID, sha)
	fresh := false
	if !waits { // in this order: a decision is in the inbox before its request is gone
		if token := a.decisionWaits(sha); token != "" {
			t.waiting = true
			a.noteRequest(token, need) // a crash may have come before it
			return token, nil
		}
		if pending, fresh, err = a.Permits.Ask(a.ID, a.owner(), need); err != nil {
			return "", fmt.Errorf("ask for permission: %w", err)
		}
	}
	t.waiting = true
	if fresh {
		asked := &record.Permission{Token: pending.Token, Event: "asked", Tag: need.Tag, SHA256: sha, Request: need.Detail.String()}
		if _, err := a.append(asked); err != nil {
			return "", err
		}
	}
	a.noteRequest(pending.Token, need)
	a.emit(event.PermissionRequested, t.id,
		event.Asked{Token: pending.Token, Tag: need.Tag, Reason: need.Reason, Request: need.Detail.String()})
	return pending.Token, nil
}

// answered is how the same request was answered last, in one of those ways, if no person
// has spoken since: a model that goes on asking is answered without them.
func (a *agent) answered(sha string, ways ...permission.Decision) *record.Permission {
	c, err := a.history.Context()
	if err != nil {
		a.log.Warn("earlier answers are not known", "err", err)
		return nil
	}
	for _, e := range slices.Backward(c.Entries) {
		switch r := e.Rec.(type) {
		case *record.User:
			if r.Origin == "" {
				return nil
			}
		case *record.Permission:
			if r.SHA256 == sha && slices.Contains(ways, permission.Decision(r.Event)) {
				return r
			}
		}
	}
	return nil
}

func needsApproval(token string) *tools.Result {
	return &tools.Result{Status: tools.Denied, Text: "needs approval " + token +
		": a person has been asked to allow it. Do not call again now: end your turn. You will be told the decision."}
}

// decisionWaits finds the token of a request whose decision lies in the inbox. A
// turn that is taken up again after a crash comes to the same call once more; the
// person who answered meanwhile must not be asked twice.
func (a *agent) decisionWaits(sha string) (token string) {
	for _, h := range a.Inbox.Open() {
		if h.Kind != message.Permission {
			continue
		}
		if it, err := a.Inbox.Read(h.ID); err == nil && it.SHA256 == sha {
			return it.Token
		}
	}
	return ""
}
