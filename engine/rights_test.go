package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
)

func TestTheFirstAnswerWinsAndTheOtherIsToldWho(t *testing.T) {
	h := newHousehold(t, Limits{})
	one := h.person("one")
	for i := range 50 {
		r, err := permission.General(fmt.Sprintf("@read:/srv/%d", i), "to look")
		if err != nil {
			t.Fatal(err)
		}
		p, _, err := h.approvals.asks.Ask(one, permission.Owner{}, r)
		if err != nil {
			t.Fatal(err)
		}

		surfaces := []struct {
			by string
			d  permission.Decision
		}{{"the terminal", permission.Once}, {"the chat", permission.Deny}}
		var wg sync.WaitGroup
		var earlier [2]*permission.Pending
		var errs [2]error
		for i, s := range surfaces {
			wg.Go(func() { earlier[i], errs[i] = h.Decide(t.Context(), p.Token, s.d, s.by) })
		}

		wg.Wait()
		won, lost := -1, -1
		for i := range surfaces {
			if errs[i] == nil && earlier[i] == nil {
				won = i
			} else {
				lost = i
			}
		}

		if won < 0 || lost < 0 {
			t.Fatalf("both won, or none: %v %v", earlier, errs)
		}

		// Whether it came at the same time or when the request was gone already.
		if e := earlier[lost]; errs[lost] != nil || e.DecidedBy != surfaces[won].by || e.Decision != surfaces[won].d {
			t.Errorf("%s is told %+v, %v; want %s: %s", surfaces[lost].by, e, errs[lost], surfaces[won].by, surfaces[won].d)
		}
	}
}

// Whoever answers in a file after someone else is told who was first.
func TestALateAnswerInAFileIsTold(t *testing.T) {
	h := newHousehold(t, Limits{})
	p, _, err := h.approvals.asks.Ask(h.person("one"), permission.Owner{}, mustGeneral(t, "@web"))
	must(t, err)
	_, err = h.Decide(t.Context(), p.Token, permission.Deny, "the chat")
	must(t, err)
	late := p
	late.Decision = permission.Always
	if left := h.approvals.decide(t.Context(), []permission.Pending{late}); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
	if !slices.ContainsFunc(told(h.house), func(e event.Event) bool {
		return strings.Contains(fmt.Sprintf("%+v", e.Body), "the answer always came too late: deny by the chat came first")
	}) {
		t.Errorf("told is %+v", told(h.house))
	}
}

func TestTheOverseerIsTheNearestPerson(t *testing.T) {
	h := newHousehold(t, Limits{})
	if _, ok := h.Overseer("nobody"); ok {
		t.Error("there is an overseer before any person wrote")
	}
	one, two := h.person("one"), h.person("two")
	child, err := h.child(one, "c", false)
	if err != nil {
		t.Fatal(err)
	}

	ops, err := h.Family.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Ops", CreatedBy: one}, message.Incoming{})
	if err != nil {
		t.Fatal(err)
	}
	clock, err := h.System.Create(t.Context(), address.Descriptor{Type: address.Cron, Name: "nightly"})
	if err != nil {
		t.Fatal(err)
	}

	for id, want := range map[string]string{one: one, child.ID: one, ops.ID: one, clock.ID: two} {
		if got, ok := h.Overseer(id); !ok || got.ID != want {
			t.Errorf("overseer of %s is %s, want %s", h.name(id), h.name(got.ID), h.name(want))
		}
	}
}

func TestOnlyWhatIsHeldIsShared(t *testing.T) {
	h := newHousehold(t, Limits{})
	one, two := h.person("one"), h.person("two")
	child, err := h.child(one, "c", false)
	if err != nil {
		t.Fatal(err)
	}
	if err := record.UpdateState(h.vol, h.folder(one), func(s *record.State) { s.Permissions.ReadDirs = []string{"/srv"} }); err != nil {
		t.Fatal(err)
	}

	for _, tt := range []struct {
		from, to, tag string
		want          error
	}{
		{one, child.ID, "@write:/srv", ErrNotHeld}, {one, child.ID, "@read:/", ErrNotHeld}, {one, child.ID, "@web", ErrNotHeld},
		{one, child.ID, "everything", permission.ErrTag}, {child.ID, one, "@read:/srv", ErrStranger},
		{two, child.ID, "@read:/srv", ErrStranger},
		{one, one, "@read:/srv", ErrStranger}, {one, child.ID, "@read:/srv/logs", nil},
	} {
		if err := h.Share(t.Context(), tt.from, tt.to, tt.tag, "key "+tt.tag); !errors.Is(err, tt.want) {
			t.Errorf("%s shares %s with %s: %v, want %v", h.name(tt.from), tt.tag, h.name(tt.to), err, tt.want)
		}
	}

	var got inbox.Item
	for deadline := time.Now().Add(time.Minute); got.ID == "" && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		h.mu.Lock()
		for _, it := range h.told {
			if it.Kind == message.Permission {
				got = it
			}
		}
		h.mu.Unlock()
	}

	if got.Tag != "@read:/srv/logs" || got.Decision != "always" || !permission.IsGeneral(child.ID, got.Tag, got.SHA256) {
		t.Errorf("the child is given %+v", got)
	}
}

// A right that was given is in the agent's inbox: whoever stops waiting for an agent at work
// is not told that it failed.
func TestARightThatIsGivenToABusyAgentIsGiven(t *testing.T) {
	h := newHousehold(t, Limits{})
	one := h.person("one")
	child, err := h.child(one, "c", true) // at work
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := h.Give(ctx, child.ID, "@web", "me", nil); err != nil {
		t.Errorf("given to an agent at work: %v", err)
	}
	items, err := inbox.ReadAll(h.folder(child.ID))
	must(t, err)
	if !slices.ContainsFunc(items, func(it inbox.Item) bool { return it.Tag == "@web" && it.Decision == string(permission.Always) }) {
		t.Errorf("the right is not among what waits: %+v", items)
	}

	h.mu.Lock()
	close(h.hold["c"])
	h.mu.Unlock()
}

// Whether a right was recorded is not known if the agent's history cannot be read, and whoever
// gave it hears so.
func TestARightOfWhichNothingIsKnownIsReported(t *testing.T) {
	h := newHousehold(t, Limits{})
	one := h.person("one")
	history := filepath.Join(h.folder(one), "history.jsonl")
	os.Remove(history)
	must(t, os.Mkdir(history, 0o700))
	if err := h.Give(t.Context(), one, "@web", "me", nil); err == nil {
		t.Error("given, although nobody can know")
	}
}

// The answered requests are listed from the newest, as many as asked for; a log that cannot be read is an error.
func TestAnsweredRequests(t *testing.T) {
	h := newHousehold(t, Limits{})
	one := h.person("one")
	for _, tag := range []string{"@web:a.example", "@web:b.example", "@web:c.example"} {
		p, _, err := h.approvals.asks.Ask(one, permission.Owner{}, mustGeneral(t, tag))
		must(t, err)
		_, err = h.Decide(t.Context(), p.Token, permission.Deny, "ada")
		must(t, err)
	}

	asks, err := h.Answered(t.Context(), 2)
	must(t, err)
	var tags []string
	for _, a := range asks {
		tags = append(tags, a.Tag)
	}
	if want := []string{"@web:c.example", "@web:b.example"}; !slices.Equal(tags, want) {
		t.Errorf("the two newest are %q, want %q", tags, want)
	}
	if all, err := h.Answered(t.Context(), 10); err != nil || len(all) != 3 {
		t.Errorf("%d of all (%v), want 3", len(all), err)
	}

	log := filepath.Join(h.root, "permissions", "log.jsonl")
	must(t, errors.Join(os.Remove(log), os.Mkdir(log, 0o700)))
	if all, err := h.Answered(t.Context(), 10); err == nil {
		t.Errorf("a log that is a folder: %v, want an error", all)
	}
}

// Where it cannot be read what a child has, who takes a right away from its parent hears that the child may have it still.
func TestARightOfAChildThatCannotBeRead(t *testing.T) {
	t.Parallel()
	s := newStill(t)
	id := s.colleague(t)
	child, err := s.System.Create(t.Context(), address.Descriptor{Type: address.Subagent, ParentAgentID: id, Name: "c"})
	must(t, err)
	state := filepath.Join(s.System.folder(child.ID), "state.json")
	must(t, errors.Join(os.Remove(state), os.RemoveAll(filepath.Join(filepath.Dir(state), ".state.json"))))
	must(t, os.MkdirAll(filepath.Join(state, "x"), 0o700))
	var less []string
	err = s.Revoke(t.Context(), id, "@web", "me", func(agent string, _ permission.Set) { less = append(less, agent) })
	if err == nil || !slices.Equal(less, []string{id}) {
		t.Errorf("%v; told as taken away from %q, want the parent %s", err, less, id)
	}
}

// A request of an agent that has ended is over, and who watches hears of it.
func TestTheRequestsOfAnAgentThatEnds(t *testing.T) {
	h := newHouse(t, t.TempDir(), idle)
	a, err := h.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Ops"})
	must(t, err)
	p, _, err := h.approvals.asks.Ask(a.ID, permission.Owner{}, mustGeneral(t, "@web"))
	must(t, err)
	must(t, h.Kill(t.Context(), a.ID))
	if !slices.ContainsFunc(told(h), func(e event.Event) bool {
		asked, ok := e.Body.(event.Asked)
		return ok && e.Type == event.PermissionDecided && asked.Token == p.Token && asked.Decision == string(permission.Expired)
	}) || len(h.approvals.asks.Of(a.ID)) > 0 {
		t.Errorf("%d requests wait; the events are %+v", len(h.approvals.asks.Of(a.ID)), told(h))
	}
}
