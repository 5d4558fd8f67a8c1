package engine

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"daycare/engine/address"
	"daycare/engine/cluster/clustertest"
	"daycare/engine/disk"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
)

// A pair is two machines, the second of which has an agent and its heir, whose rights are other ones than in the folders that the
// first one has of them.
type pair struct {
	here, there *machine
	family      *Family // of the first
	ops, heir   string
}

func newPair(t *testing.T) *pair {
	t.Helper()
	url := clustertest.Serve(t, clustertest.Store(t), 0).ClientURL()
	machineIn := func() *machine {
		root := filepath.Join(t.TempDir(), ".daycare")
		must(t, os.Mkdir(root, 0o700))
		return newMachine(t, url, root, idle)
	}
	p := &pair{here: machineIn(), there: machineIn()}
	p.family = NewFamily(p.here.System, func() Limits { return Limits{} })
	for _, id := range []*string{&p.ops, &p.heir} {
		a, err := p.here.System.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Ops", CreatedBy: p.ops})
		must(t, err)
		*id = a.ID
		p.at(t, p.here, a.ID, func(s *record.State) { s.Permissions.Exec = []string{"git"} })
	}
	for _, id := range []string{p.ops, p.heir} {
		waitFor(t, "the other machine knows the agent", func() bool { _, ok := p.there.index.Get(id); return ok })
		release, err := p.there.Hold(id)
		must(t, err)
		t.Cleanup(release)
		p.at(t, p.there, id, func(s *record.State) { s.Permissions.Exec, s.Permissions.Web = nil, true })
	}

	return p
}

// at changes the state of an agent on a machine that has it, or can.
func (p *pair) at(t *testing.T, m *machine, id string, change func(*record.State)) {
	t.Helper()
	release, err := m.Hold(id)
	must(t, err)
	defer release()
	must(t, record.UpdateState(m.vol, m.folder(id), change))
}

// What an agent may do is what the machine says that has it: not the folder that is left on another one, and also before the
// agent has recorded what was decided.
func TestRightsAreThoseOfTheOwner(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	set, err := p.family.Grants(t.Context(), p.ops)
	if err != nil || !set.Web || len(set.Exec) > 0 {
		t.Errorf("from the other machine: %+v, %v", set, err)
	}
	p.at(t, p.there, p.heir, func(s *record.State) { s.Permissions.WorkingDir = filepath.Join(filepath.Dir(p.there.root), "sub") })
	if set, err = p.family.Grants(t.Context(), p.heir); err != nil || set.WorkingDir != filepath.Join(filepath.Dir(p.here.root), "sub") {
		t.Errorf("its folder in the workspace of this machine: %q, %v", set.WorkingDir, err)
	}
	for _, in := range []message.Incoming{{Decision: string(permission.Revoked), Tag: "@web"},
		{Decision: string(permission.Profiled), Tag: string(permission.ReadOnly)}} {
		in.Agent, in.Kind, in.By, in.Token = p.ops, message.Permission, "me", in.Decision
		p.here.deliver(in)
	}
	if set, err = p.family.Grants(t.Context(), p.ops); err != nil || set.Web || set.Profile != permission.ReadOnly {
		t.Errorf("after decisions that wait in its inbox: %+v, %v", set, err)
	}
	if _, err := p.family.Grants(t.Context(), "none"); !errors.Is(err, message.ErrUnknownAgent) {
		t.Errorf("of nothing: %v", err)
	}
}

// A right that is taken from an agent is taken from its heirs where they are, whatever this machine has in their folders.
func TestARightOfHeirsElsewhere(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	var less []string
	err := p.family.Revoke(t.Context(), p.ops, "@web", "me", func(agent string, left permission.Set) {
		if less = append(less, agent); left.Web {
			t.Errorf("%s has %+v left", agent, left)
		}
	})
	if err != nil || !slices.Equal(less, []string{p.ops, p.heir}) {
		t.Errorf("revoked from %q, %v", less, err)
	}
	for _, id := range []string{p.ops, p.heir} {
		items, err := inbox.ReadAll(p.there.folder(id))
		if err != nil || len(items) != 1 || items[0].Decision != string(permission.Revoked) || items[0].Tag != "@web" {
			t.Errorf("%s has %+v, %v", id, items, err)
		}
	}
}

// An agent that another one made is not changed in the folder that is left of it here, while another machine has it.
func TestAColleagueElsewhereIsNotChangedHere(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	before, err := os.ReadFile(filepath.Join(p.here.folder(p.heir), address.File))
	must(t, err)
	if a, err := p.family.Update(t.Context(), p.ops, p.heir, "changed", ""); !errors.Is(err, disk.ErrAway) {
		t.Errorf("changed as %+v, %v", a, err)
	}
	for _, m := range []*machine{p.here, p.there} {
		if now, err := os.ReadFile(filepath.Join(m.folder(p.heir), address.File)); err != nil || !bytes.Equal(now, before) {
			t.Errorf("its descriptor is %s, %v", now, err)
		}
	}
}

// Rights of an agent whose machine does not answer are not known, and no agent gets those that it had here.
func TestRightsThatAreNotKnown(t *testing.T) {
	synctest.Test(t, rightsThatAreNotKnown)
}

func rightsThatAreNotKnown(t *testing.T) {
	o := newOthers()
	h := newStill(t, func(opts *Options) { opts.Peers = o })
	family := h.Family
	ops, err := h.System.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Ops"})
	must(t, err)
	heir, err := h.System.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Heir", CreatedBy: ops.ID})
	must(t, err)
	must(t, record.UpdateState(h.vol, h.folder(heir.ID), func(s *record.State) { s.Permissions.Web = true }))
	o.move(heir.ID, "m2")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if set, err := family.Grants(ctx, heir.ID); !errors.Is(err, disk.ErrAway) || set.Web {
		t.Errorf("of a machine that does not answer: %+v, %v", set, err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err = family.Revoke(ctx, ops.ID, "@web", "me", func(string, permission.Set) {})
	if !errors.Is(err, disk.ErrAway) || !strings.Contains(err.Error(), "@web is not revoked from ") {
		t.Errorf("who takes a right away that an heir may still have hears: %v", err)
	}

	o.mu.Lock()
	o.state = `{"permissions":{"exec":["git"]}}`
	o.mu.Unlock()
	if set, err := family.Grants(t.Context(), heir.ID); err != nil || !slices.Equal(set.Exec, []string{"git"}) {
		t.Errorf("of a machine that answers again: %+v, %v", set, err)
	}
	o.mu.Lock()
	o.state = `{`
	o.mu.Unlock()
	if set, err := family.Grants(t.Context(), heir.ID); err == nil {
		t.Errorf("of an answer that cannot be read: %+v", set)
	}
}

// A long message is a file in the workspace of the machine that has the agent, where it can read it.
func TestALongMessageToAnotherMachine(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	long := strings.Repeat("täglich ", 2_000)
	for range 2 {
		_, err := p.here.deliverSystem(t.Context(), message.Incoming{Agent: p.ops, Origin: p.heir, Dedupe: "one", Text: long})
		must(t, err)
	}
	files := map[*machine][]string{}
	for _, m := range []*machine{p.here, p.there} {
		list, err := filepath.Glob(filepath.Join(filepath.Dir(m.root), spillDir, "*.md"))
		must(t, err)
		files[m] = list
	}
	if len(files[p.here]) > 0 || len(files[p.there]) != 1 {
		t.Fatalf("files: %v", files)
	}
	if data, err := os.ReadFile(files[p.there][0]); err != nil || string(data) != long {
		t.Errorf("the file has %d bytes, want %d: %v", len(data), len(long), err)
	}
	items, err := inbox.ReadAll(p.there.folder(p.ops))
	if err != nil || len(items) != 1 || !strings.Contains(items[0].Text, files[p.there][0]) || len(items[0].Text) > 3_000 {
		t.Errorf("it has %d items, %v", len(items), err)
	}
}
