package agents

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
)

// ends waits until the agent has ended by itself.
func (b *bench) ends() {
	b.t.Helper()
	select {
	case err := <-b.done:
		if err != nil {
			b.t.Errorf("agent: %v", err)
		}
	case <-time.After(30 * time.Second):
		b.t.Fatal("the agent does not sleep")
	}
	b.end()
	b.end = nil
	b.box.Close()
}

// An agent without work sleeps after a while, or at once when others wait for its place.
// What it counted is in state.json then; an agent that never did anything leaves no trace.
func TestAnAgentWithoutWorkSleeps(t *testing.T) {
	for _, why := range []string{"after a while", "for others"} {
		for _, worked := range []bool{true, false} {
			b := newBench(t, callHold)
			leave := make(chan struct{})
			b.opts.Leave = leave
			path := filepath.Join(b.dir, "state.json")
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if why == "after a while" {
				b.opts.Settings.Idle = 20 * time.Millisecond
			}

			var item string
			if worked {
				item = b.say("hello")
			}
			b.run()
			if why == "for others" {
				if worked {
					b.wait(item)
				}
				leave <- struct{}{}
			}

			b.ends()
			after, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if changed := string(before) != string(after); changed != worked {
				t.Errorf("%s: an agent that worked: %v, has written state.json: %v", why, worked, changed)
			}
			if s, _, _, err := record.ReadState(b.dir); err != nil || worked && s.Seq == 0 {
				t.Errorf("%s: state.json is %+v, %v", why, s, err)
			}
		}
	}
}

// An agent that has a decision to store does not sleep, and makes no room for others.
func TestAnAgentWithADecisionToStoreStaysAwake(t *testing.T) {
	b := newBench(t, callHold)
	leave := make(chan struct{})
	b.opts.Leave = leave
	b.opts.Settings.Idle = time.Millisecond
	reports := b.reports()
	path := filepath.Join(b.dir, "state.json")
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.box.Accept(t.Context(), inbox.Item{Kind: message.Permission, Token: "t",
		Decision: string(permission.Revoked), Tag: "@read:/srv", By: "ada"}); err != nil {
		t.Fatal(err)
	}

	b.run()
	within(t, "it is reported that the decision is not stored", func() bool {
		return reports.has("the permission @read:/srv was revoked and no longer applies, but is still in the file")
	})

	select {
	case leave <- struct{}{}:
		t.Error("it made room for others")
	case err := <-b.done:
		t.Errorf("it sleeps: %v", err)
		b.end = nil
	case <-time.After(30 * time.Millisecond):
	}

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// A decision that cannot be stored is reported once, with what does not apply yet.
func TestADecisionThatIsNotStoredIsReportedOnce(t *testing.T) {
	for want, it := range map[string]inbox.Item{
		"the permission @read:/srv was granted permanently but does not apply yet": {Decision: string(permission.Always),
			Tag: "@read:/srv"},
		"the permission @read:/srv was revoked": {Decision: string(permission.Revoked), Tag: "@read:/srv"},
	} {
		b := newBench(t, callHold)
		a, err := open(t.Context(), b.opts.options())
		if err != nil {
			t.Fatal(err)
		}
		reports := b.reports()
		it.Kind = message.Permission
		r, err := b.box.Accept(t.Context(), it)
		if err != nil {
			t.Fatal(err)
		}

		it.ID = r.Item
		for n, pause := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
			begin := time.Now()
			if err := a.permits.postpone(it, errSeeded); err != nil {
				t.Fatal(err)
			}
			if p := &a.permits.postponed; !p.waits(it.ID) || p.waits("other") || p.due() == nil ||
				p.next.Sub(begin).Round(time.Second/2) != pause {
				t.Errorf("after try %d the next one is at %v, want in %v", n+1, p.next.Sub(begin), pause)
			}
		}

		within(t, want, func() bool { return reports.has(want) })
		if n := reports.count(want); n != 1 {
			t.Errorf("%s: reported %d times", want, n)
		}
		if a.permits.postponed.soon(); a.permits.postponed.waits(it.ID) {
			t.Error("it is not tried at once although the file changed")
		}
		if a.permits.stored(it); a.permits.postponed.due() != nil {
			t.Error("it is to be tried again although it is stored")
		}
		if err := a.close(); err != nil {
			t.Error(err)
		}
	}
}
