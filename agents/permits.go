package agents

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"daycare/agents/providers"
	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/inbox"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/tools"
	"daycare/tools/hooks"
)

// permits ask a user for what a tool call needs, and record what users decide.
type permits struct {
	queue     Permits  // nil: no approval is requested
	overseer  Overseer // of an agent in the background; nil: its own user answers
	journal   *journal
	intake    *intake
	files     *files
	rights    *rights
	costs     Costs
	postponed postponed
	hooks     *hooking
}

// permit decides whether a call may run. grant is the once approval that it uses
// up; refused is the result that the model reads instead.
func (pm *permits) permit(ctx context.Context, t *turn, p *prepared) (grant string, refused *tools.Result, err error) {
	if refused := refusedBy(*p); refused != nil {
		return "", refused, nil
	}
	need, err := needs(*p)
	if p.hooked.Decision == hooks.Ask && err == nil {
		need, err = asked(*p, need)
	}
	if err != nil {
		r := tools.Errorf("%v", err)
		return "", &r, nil
	}
	if need == nil {
		return "", nil, nil
	}
	access, err := permission.Parse(need.Tag)
	if overreaches(p.call.Access, access) {
		return "", &tools.Result{Status: tools.Denied, Text: "denied: this is a dry run, which writes in " +
			p.call.Access.WorkingDir + " only"}, nil
	}
	if err == nil && !need.AskAlways && p.call.Access.Allows(access) {
		return "", nil, nil
	}
	sha := need.SHA256(pm.journal.id)
	for _, g := range p.call.Access.Grants {
		if g.SHA256 == sha && !(outside(*need) && given(g, foreign(access, p.sources))) {
			p.call.Approved = need.Tag
			return "", nil, nil
		}
	}
	need.Sources = texts(p.sources)
	ob := pm.journal.history.Obligations()
	for _, o := range ob.Once {
		if o.SHA256 == sha {
			p.call.Approved = need.Tag
			return o.Token, nil, nil
		}
	}
	if ob.Turn != nil { // this very call, run again after a crash
		for _, c := range ob.Turn.Calls {
			if c.Call.ID == p.call.ID && c.Grant.SHA256 == sha {
				p.call.Approved = need.Tag
				return c.Grant.Token, nil, nil
			}
		}
	}
	if p.call.Access.Profile == permission.ReadOnly {
		return "", &tools.Result{Status: tools.Denied,
			Text: "denied: " + need.Tag + " needs an approval, but this agent only reads (profile read-only), " +
				"so no approval is requested"}, nil
	}
	refused, err = pm.request(ctx, t, *need, sha, p.hooked.Approved)
	if refused == nil {
		p.call.Approved = need.Tag
	}

	return "", refused, err
}

// request asks a user, without waiting: the decision arrives as an item. approved is the
// hook that answers in their place, as its settings let it; "": none does. Then nothing is
// refused.
func (pm *permits) request(ctx context.Context, t *turn, need permission.Request, sha, approved string) (*tools.Result, error) {
	access, _ := permission.Parse(need.Tag)
	if _, exec := access.(permission.Exec); exec && t.settings.ExecDenied || pm.queue == nil {
		return &tools.Result{Status: tools.Denied,
			Text: "denied: " + need.Tag + " is disabled in the settings, so no approval is requested"}, nil
	}
	if no := pm.journal.answered(sha, permission.Deny); no != nil {
		return &tools.Result{Status: tools.Denied,
			Text: "denied: " + no.By + " denied exactly this. Do not ask again until the user writes to you; go on " +
				"without it, or say that you cannot."}, nil
	}
	if approved != "" {
		return nil, nil
	}
	token, err := pm.askOnce(ctx, t, need, sha)
	if errors.Is(err, permission.ErrTag) { // nobody could read what they allow
		r := tools.Errorf("cannot request approval: %v", err)
		return &r, nil
	}
	if err != nil {
		return nil, err
	}

	return needsApproval(token), nil
}

// askOnce puts a request into the queue, if it does not wait there or was not answered
// just now, and returns its token. The turn waits for the answer.
// The approval hooks run before the request is recorded as asked: one that a crash cut runs
// again.
func (pm *permits) askOnce(ctx context.Context, t *turn, need permission.Request, sha string) (token string, err error) {
	pending, waits := pm.queue.Find(pm.journal.id, sha)
	fresh := false
	if !waits { // in this order: a decision is in the inbox before its request is gone
		if token := pm.intake.decisionWaits(sha); token != "" {
			t.waiting = true
			pm.noteRequest(token, need) // a crash may have come before it
			return token, nil
		}
		if pending, fresh, err = pm.queue.Ask(pm.journal.id, pm.owner(), need); err != nil {
			return "", fmt.Errorf("ask for permission: %w", err)
		}
	}
	t.waiting = true
	pm.noteRequest(pending.Token, need)
	pm.journal.emit(event.PermissionRequested, t.id,
		event.Asked{Token: pending.Token, Tag: need.Tag, Reason: need.Reason, Request: need.Detail.String()})
	if open := pm.journal.history.Obligations().Turn; !fresh && t.again && open != nil {
		fresh = !slices.Contains(open.Asked, pending.Token) // a crash came before it was recorded
	}
	if !fresh {
		return pending.Token, nil
	}
	if err := pm.hooks.asked(ctx, t, pending.Token, need); err != nil {
		return "", err
	}
	_, err = pm.journal.append(&record.Permission{Token: pending.Token, Event: "asked", Tag: need.Tag, SHA256: sha,
		Request: need.Detail.String()})
	return pending.Token, err
}

// At the limit of a budget a turn ends, and a user is asked whether to raise it. The
// agent is paused until they answer: what it is sent meanwhile is recorded and answered
// with the same words. A turn follows the answer, with all of it in the context. If the
// limit was not raised, that turn comes to the limit again, and ends without a question.

// askToRaise asks a user to raise the limit that was reached. The token is empty where
// nobody is asked: the settings say so, or a user has answered and not spoken since.
func (pm *permits) askToRaise(ctx context.Context, t *turn, f *providers.Failure) (token string, err error) {
	var reached interface {
		error
		Request() permission.Request
	}
	if !errors.As(f.Err, &reached) || t.settings.StopAtLimit || pm.queue == nil {
		return "", nil
	}
	need := reached.Request()
	sha := need.SHA256(pm.journal.id)
	if pm.journal.answered(sha, permission.Deny, permission.Expired) != nil {
		return "", nil
	}

	return pm.askOnce(ctx, t, need, sha)
}

// decided records a user's answer to a request of this agent. The decision is
// in effect from here on; in the turn that follows the model is notified.
func (pm *permits) decided(ctx context.Context, it inbox.Item) error {
	if crash.Bug("denyignored") && it.Decision == string(permission.Deny) {
		it.Decision = string(permission.Once)
	}
	if access := rightGiven(it); access != nil {
		pm.files.giveFolders(access)
	}
	if err := pm.raise(ctx, it); err != nil {
		return pm.postpone(it, err)
	}
	if change := change(pm.journal.id, it); change != nil {
		if err := pm.files.saveState(change); err != nil {
			return pm.postpone(it, err)
		}
	}
	pm.stored(it)
	if _, err := pm.journal.append(&record.Permission{Token: it.Token, Item: it.ID, Event: it.Decision, Tag: it.Tag,
		By: it.By, SHA256: it.SHA256, Request: it.Text, Silent: it.Silent}); err != nil {
		return err
	}
	if err := pm.journal.barrier(); err != nil {
		return err
	}
	switch permission.Decision(it.Decision) {
	case permission.Profiled:
		pm.rights.narrowed(&pm.files.self)
		return pm.intake.done(it.ID)
	case permission.Revoked:
		pm.rights.narrowed(&pm.files.self)
		pm.journal.emit(event.PermissionRevoked, "", event.Asked{Token: it.Token, Tag: it.Tag, By: it.By})
		return pm.intake.done(it.ID)
	case permission.Always, permission.Prefix:
		pm.journal.emit(event.PermissionGranted, "", event.Asked{Token: it.Token, Tag: it.Tag, By: it.By})
	}
	if err := pm.conclude(it); err != nil {
		return err
	}
	if !it.Silent {
		pm.journal.show(event.Thinking, "") // the turn that follows is already owed
	}

	return pm.intake.done(it.ID)
}

// raise raises a limit as a user said, durably. Doing it again is harmless.
func (pm *permits) raise(ctx context.Context, it inbox.Item) error {
	b, ok := permission.BudgetOf(it.Tag)
	if !ok {
		return nil
	}
	switch d := permission.Decision(it.Decision); d {
	case permission.Once, permission.Always:
		if err := pm.costs.Raise(ctx, b, d, it.Token, it.By); err != nil {
			return fmt.Errorf("raise %s: %w", b.Key(), err)
		}
	}

	return nil
}

// postpone leaves a decision open that could not be stored, and reports that once.
func (pm *permits) postpone(it inbox.Item, err error) error {
	if errors.Is(err, disk.ErrFailed) || errors.Is(err, record.ErrGone) {
		return err
	}
	p := &pm.postponed
	known := p.items[it.ID]
	if !known && p.items == nil {
		p.items = map[string]bool{}
	}
	if len(p.items) == 0 {
		p.pause = storeFirst
	}
	p.items[it.ID] = true
	p.next = time.Now().Add(p.pause)
	p.pause = min(2*p.pause, storeLast)
	pm.intake.box.Untake(it.ID)
	if known {
		return nil
	}
	file := pm.journal.path("state.json")
	what := "the permission " + it.Tag + " was granted permanently but does not apply yet"
	if it.Decision == string(permission.Revoked) {
		what = "the permission " + it.Tag + " was revoked and no longer applies, but is still in the file"
	}
	if b, ok := permission.BudgetOf(it.Tag); ok {
		what = "the answer to " + b.String() + " does not apply yet"
		if b.Setting() {
			file = filepath.Join(filepath.Dir(filepath.Dir(pm.journal.dir)), "settings.yaml")
		}
	}
	pm.journal.problems.Report(pm.journal.id, finding.Finding{ID: "decision-not-stored", Severity: finding.Error, File: file,
		Reason: fmt.Sprintf("%s, because the file could not be changed: %v", what, err),
		Remedy: "Repair the file or free some disk space; daycare keeps trying."})
	return nil
}

// stored forgets a decision that was postponed.
func (pm *permits) stored(it inbox.Item) { delete(pm.postponed.items, it.ID) }

// conclude does what follows from a decision that is in history: who oversees the agent
// is told, and the request leaves the queue. It may be done again after a crash.
func (pm *permits) conclude(it inbox.Item) error {
	switch d := permission.Decision(it.Decision); {
	case it.Token == "", d == permission.Revoked, d == permission.Used, d == permission.Profiled:
		return nil // no answer to a request
	}
	pm.noteDecision(it)
	if pm.queue == nil {
		return nil
	}
	_, err := pm.queue.Settle(it.Token, permission.Decision(it.Decision), it.By, it.At)
	if err != nil && !errors.Is(err, permission.ErrUnknown) {
		return fmt.Errorf("settle request: %w", err)
	}

	return nil
}

// owner is who may answer a request of this agent in a chat.
func (pm *permits) owner() permission.Owner {
	if pm.overseer != nil {
		return pm.overseer.Owner()
	}
	d := pm.files.meta.Descriptor
	return permission.Owner{Connector: d.Connector, UserID: d.UserID}
}

// note tells the agent of the user who answers. The request stands without it, so
// a failure is only logged.
func (pm *permits) note(key, text string) {
	if pm.overseer == nil {
		return
	}
	if err := pm.overseer.Note(key, text); err != nil {
		pm.journal.log.Warn("the user's agent was not notified of an approval request", "key", key, "err", err)
	}
}

// noteRequest tells the agent of the user who is asked.
func (pm *permits) noteRequest(token string, need permission.Request) {
	pm.note("ask:"+token, fmt.Sprintf("Agent %s (id: %s) asks the user to allow %s (%s). Reason: %s. The request is "+
		"%s; only the user can answer it, not you.",
		pm.files.meta.Name, pm.journal.id, need.Tag, need.Detail, need.Reason, token))
}

// noteDecision tells the agent of the user who answered.
func (pm *permits) noteDecision(it inbox.Item) {
	pm.note("decided:"+it.Token, fmt.Sprintf("The request %s of agent %s for %s was answered by %s: %s.", it.Token,
		pm.files.meta.Name, it.Tag, it.By, it.Decision))
}

func needsApproval(token string) *tools.Result {
	return &tools.Result{Status: tools.Denied, Text: "needs approval " + token +
		": the user has been asked to allow it. Do not call again now: end your turn. You will be told the decision."}
}
