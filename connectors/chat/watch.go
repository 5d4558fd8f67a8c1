package chat

import (
	"context"
	"sync"
	"time"

	"daycare/engine/event"
	"daycare/engine/message"
	"daycare/engine/permission"
)

const (
	typingEvery = 4 * time.Second  // platforms show "typing" for about five
	typingTime  = 3 * time.Second  // one try may take
	lookAfter   = 30 * time.Second // an event, for what another one that was lost would have told
)

// Run tries messages that wait, and watches the engine, until ctx ends. pause is waited
// after the first refusal of a message.
func (d *Desk) Run(ctx context.Context, deliver message.Deliver, pause time.Duration) {
	var beside sync.WaitGroup
	defer beside.Wait()
	d.waiting.again()
	beside.Go(func() {
		d.waiting.run(ctx, pause, func(ctx context.Context, in message.Incoming) error { return d.hand(ctx, deliver, in) })
	})
	d.watcher.watch(ctx)
}

// A watcher shows users what happens in the engine.
type watcher struct {
	host      Host
	who       *people
	voice     voice
	approvals *approvals
	drafts    *drafts
}

// watch shows requests as they come, and "typing" while an agent of this connector
// works. No clock runs while nothing happens.
func (w *watcher) watch(ctx context.Context) {
	if w.host.Events == nil {
		return
	}
	events := w.host.Events.Subscribe(ctx)
	typing, look := time.NewTicker(typingEvery), time.NewTimer(lookAfter)
	defer typing.Stop()
	defer look.Stop()
	typing.Stop()
	look.Stop()
	looks, types := false, false         // whether they run
	work := map[string]message.Address{} // agents at work, and where that is shown
	w.approvals.cards.load()
	w.approvals.look(ctx)
	defer w.drafts.shows.Wait()

	for {
		select {
		case e, ok := <-events:
			if !ok {
				return
			}
			w.happened(ctx, e, work)
			w.drafts.happened(ctx, e)
			if !looks {
				look.Reset(lookAfter)
				looks = true
			}
		case <-typing.C:
			for agent, to := range work {
				w.stillAtWork(ctx, agent, to, work)
			}
		case <-look.C:
			looks = false
			w.approvals.look(ctx)
		case <-ctx.Done():
			return
		}

		switch busy := len(work) > 0; {
		case busy && !types:
			typing.Reset(typingEvery)
		case !busy && types:
			typing.Stop()
		}

		types = len(work) > 0
	}
}

func (w *watcher) happened(ctx context.Context, e event.Event, work map[string]message.Address) {
	switch e.Type {
	case event.TurnStarted:
		if to, ok := w.who.home(e.Agent); ok && w.speaks(ctx, e.Agent) {
			work[e.Agent] = to
			w.voice.atWork(ctx, to)
		}
	case event.TurnFinished, event.AgentSlept, event.AgentEnded:
		delete(work, e.Agent)
	case event.AgentCompacted:
		if c, ok := e.Body.(event.Compacted); ok {
			w.compacted(ctx, e.Agent, c)
		}
	case event.PermissionRequested:
		w.approvals.look(ctx)
	case event.PermissionDecided:
		if a, ok := e.Body.(event.Asked); ok {
			w.approvals.settle(ctx, a.Token, permission.Decision(a.Decision), a.By)
		}
	}
}

// compacted tells the user that their conversation was shortened, and what it cost
// their last message.
func (w *watcher) compacted(ctx context.Context, agent string, c event.Compacted) {
	to, ok := w.who.home(agent)
	if !ok || w.host.Agents == nil {
		return
	}
	if a, err := w.host.Agents.Agent(ctx, agent); err != nil || a.Type != "user" {
		return // what clocks and background agents forget is not the user's conversation
	}

	text := w.voice.t("Our conversation was getting too long for me, so I replaced its older part by a summary.")
	switch {
	case c.Failed != "":
		text = w.voice.t("I did not compact it: %s.", c.Failed)
	case c.RequestCut > 0:
		text += " " + w.voice.t("Your last message is too long as well: I keep its beginning and its end, and about %d "+
			"characters in between are left out. Send long texts as a file.", c.RequestCut)
	}

	w.voice.sayTo(ctx, to, "", text)
}

// speaks reports whether an agent answers users itself: its children's work is
// shown by nobody.
func (w *watcher) speaks(ctx context.Context, agent string) bool {
	if w.host.Agents == nil {
		return true
	}
	a, err := w.host.Agents.Agent(ctx, agent)
	return err == nil && a.ParentAgentID == ""
}

// stillAtWork shows that an agent works, as long as it does: the end of its turn may
// be an event that was lost.
func (w *watcher) stillAtWork(ctx context.Context, agent string, to message.Address, work map[string]message.Address) {
	if w.host.Agents != nil {
		a, err := w.host.Agents.Agent(ctx, agent)
		if err != nil || a.State == event.Idle || a.State == event.Ended || a.State == event.WaitingPermission || a.State == event.Paused {
			delete(work, agent)
			return
		}
	}
	w.voice.atWork(ctx, to)
}
