package engine

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/engine/address"
	"daycare/engine/crash"
	"daycare/engine/crash/crashtest"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/folders"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
)

// A still is a System in which nothing runs: no agent works, and nothing is watched.
type still struct {
	*System
	*Family
	asks *permission.Queue
}

func newStill(t testing.TB, change ...func(*Options)) *still {
	t.Helper()
	root, log := filepath.Join(t.TempDir(), ".daycare"), slog.New(slog.DiscardHandler)
	must(t, os.Mkdir(root, 0o700))
	vol := disk.NewVolume(root)
	index, _, err := address.Load(vol, root, log)
	must(t, err)
	asks, _, err := permission.OpenQueue(vol, root, time.Now, time.Hour)
	must(t, err)
	t.Cleanup(func() { asks.Close() })
	t.Cleanup(func() { index.Close() })
	o := Options{Asks: asks, Files: Files{Root: root, Volume: vol, Index: index},
		Reports:       Reports{Events: event.NewStream("t"), Log: log},
		AgentDefaults: AgentDefaults{NewState: func(address.Descriptor) ([]byte, error) { return []byte("{}\n"), nil }}}
	for _, c := range change {
		c(&o)
	}

	s, err := New(o)
	must(t, err)
	return &still{s, NewFamily(s, func() Limits { return Limits{} }), asks}
}

// colleague makes a permanent agent.
func (s *still) colleague(t testing.TB) string {
	t.Helper()
	a, err := s.System.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Ops"})
	must(t, err)
	return a.ID
}

// Whoever asks for something durable hears of it when a step of it fails: nothing is
// called done, accepted or stored that a crash could take back.
func TestEachFailedStepOfAnActionIsReported(t *testing.T) {
	actions := map[string]func(t *testing.T, s *still) func() error{
		"a first message": func(_ *testing.T, s *still) func() error {
			return func() error { _, err := s.Deliver(context.Background(), from("one", "hello")); return err }
		},
		"a second message": func(t *testing.T, s *still) func() error {
			_, err := s.Deliver(t.Context(), from("one", "hello"))
			must(t, err)
			return func() error { _, err := s.Deliver(context.Background(), from("one", "again")); return err }
		},
		"an agent made by hand": func(_ *testing.T, s *still) func() error {
			return func() error {
				_, err := s.System.Create(context.Background(), address.Descriptor{Type: address.Permanent, Name: "Ops"})
				return err
			}
		},
		"the next agent of the terminal": func(_ *testing.T, s *still) func() error {
			return func() error {
				_, err := s.System.Create(context.Background(), address.Descriptor{Type: address.User, Connector: "terminal", UserID: "u"})
				return err
			}
		},
		"a child with its first message": func(t *testing.T, s *still) func() error {
			parent := s.colleague(t)
			return func() error {
				_, err := s.Family.Create(context.Background(), address.Descriptor{Type: address.Subagent,
					ID: strings.Repeat("c", 24), Name: "child", ParentAgentID: parent}, message.Incoming{Origin: parent, Text: "work"})
				return err
			}
		},
		"a kill": func(t *testing.T, s *still) func() error {
			id := s.colleague(t)
			return func() error { return s.Kill(context.Background(), id) }
		},
		"a kill of a family": func(t *testing.T, s *still) func() error {
			id := s.colleague(t)
			_, err := s.System.Create(t.Context(), address.Descriptor{Type: address.Subagent, ParentAgentID: id, Name: "x"})
			must(t, err)
			return func() error { return s.Kill(context.Background(), id) }
		},
		"a removal": func(t *testing.T, s *still) func() error {
			id := s.colleague(t)
			return func() error { _, err := s.Remove(context.Background(), id, false); return err }
		},
		"a return from the trash": func(t *testing.T, s *still) func() error {
			id := s.colleague(t)
			_, err := s.Remove(t.Context(), id, false)
			must(t, err)
			return func() error { _, err := s.Restore(context.Background(), id); return err }
		},
		"an import": func(t *testing.T, s *still) func() error {
			id := s.colleague(t)
			var out bytes.Buffer
			must(t, folders.Export(s.System.root, id, &out))
			return func() error { _, err := s.Import(context.Background(), &out, "twin"); return err }
		},
		"an edit of a descriptor": func(t *testing.T, s *still) func() error {
			id := s.colleague(t)
			v, err := s.ReadFile(t.Context(), id, address.File)
			must(t, err)
			edit := bytes.Replace(v.Content, []byte("Ops"), []byte("Ops2"), 1)
			return func() error { _, err := s.WriteFile(context.Background(), id, address.File, edit, v.Hash); return err }
		},
		"an item that is dropped": func(t *testing.T, s *still) func() error {
			r, err := s.Deliver(t.Context(), from("one", "hello"))
			must(t, err)
			return func() error { return s.Drop(context.Background(), r.Agent, r.Item) }
		},
		"a queued message that its sender edits": func(t *testing.T, s *still) func() error {
			return amending(t, s, message.Amendment{Text: "better"})
		},
		"a queued message that its sender deletes": func(t *testing.T, s *still) func() error {
			return amending(t, s, message.Amendment{Deleted: true})
		},
		"a long message to another agent": func(t *testing.T, s *still) func() error {
			id := s.colleague(t)
			return func() error {
				return s.Note(context.Background(), id, "other", "key", strings.Repeat("long ", maxSystemText))
			}
		},
		"a right that is shared": func(t *testing.T, s *still) func() error {
			id := s.colleague(t)
			child, err := s.System.Create(t.Context(), address.Descriptor{Type: address.Subagent, ParentAgentID: id, Name: "x"})
			must(t, err)
			must(t, record.UpdateState(s.System.vol, s.System.folder(id), func(st *record.State) { st.Permissions.Web = true }))
			return func() error { return s.Share(context.Background(), id, child.ID, "@web", "key") }
		},
		"a decision": func(t *testing.T, s *still) func() error {
			id := s.colleague(t)
			p, _, err := s.approvals.asks.Ask(id, permission.Owner{}, mustGeneral(t, "@web"))
			must(t, err)
			return func() error { _, err := s.Decide(context.Background(), p.Token, permission.Always, "me"); return err }
		},
	}
	excused := []string{
		// a place for a crash: nothing is done there
		"inbox.accepted",
		"state.kept.write", "state.kept.rename", "descriptor.kept.write", "descriptor.kept.rename", // copies for repairs by hand
	}
	for name, action := range actions {
		t.Run(name, func(t *testing.T) {
			crashtest.EachStepFails(t, "eio", func(t *testing.T) func() error { return action(t, newStill(t)) }, excused...)
		})
	}
}

// amending has the sender of a message that waits change it.
func amending(t *testing.T, s *still, a message.Amendment) func() error {
	in := from("one", "hello")
	in.Context.MessageID = "m1"
	_, err := s.Deliver(t.Context(), in)
	must(t, err)
	a.From, a.MessageID = in.From, "m1"
	return func() error { _, err := s.Amend(context.Background(), a); return err }
}

// A disk that is full takes no new agent, and says so; what was there stays.
func TestAFullDiskTakesNoNewAgent(t *testing.T) {
	s := newStill(t)
	id := s.colleague(t)
	var out bytes.Buffer
	must(t, folders.Export(s.System.root, id, &out))
	must(t, os.MkdirAll(filepath.Join(s.System.root, ".ballast", "in the way"), 0o700)) // no room can be kept back again
	crash.Arm(t, "enospc@#1+")
	if _, err := s.Deliver(t.Context(), message.Incoming{Agent: id, Text: "hello"}); err == nil {
		t.Fatal("a message was accepted although nothing can be written")
	}
	if err := s.Give(t.Context(), id, "@web", "me", nil); err == nil {
		t.Error("a right was given that cannot be stored")
	}
	if !s.vol.Full() {
		t.Fatal("the volume is not known to be full")
	}

	crash.Arm(t, "") // from here on it is the volume that knows
	for what, try := range map[string]func() error{
		"a first message": func() error { _, err := s.Deliver(t.Context(), from("new", "x")); return err },
		"one made by hand": func() error {
			_, err := s.System.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "b"})
			return err
		},
		"one of the terminal": func() error {
			_, err := s.System.Create(t.Context(), address.Descriptor{Type: address.User, Connector: "terminal", UserID: "u"})
			return err
		},
		"a fork":    func() error { _, err := s.Fork(t.Context(), id, 0, ""); return err },
		"an import": func() error { _, err := s.Import(t.Context(), bytes.NewReader(out.Bytes()), "twin"); return err },
	} {
		if err := try(); !errors.Is(err, disk.ErrFull) {
			t.Errorf("%s: %v, want %v", what, err, disk.ErrFull)
		}
	}

	if n := len(s.index.All()); n != 1 {
		t.Errorf("there are %d agents, want the one", n)
	}
}
