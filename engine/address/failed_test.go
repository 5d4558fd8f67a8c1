package address

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"daycare/engine/crash/crashtest"
	"daycare/engine/disk"
)

// A step that fails is reported also where the disk continues after it: no agent is made, or
// taken in, without a handle that is durable.
func TestAStepThatFailsOnceIsReported(t *testing.T) {
	copies := []string{"descriptor.kept.write", "descriptor.kept.rename"}
	for _, fault := range []string{"enospc", "emfile", "eacces"} {
		crashtest.EachStepFails(t, fault, func(t *testing.T) func() error {
			x, _ := load(t, t.TempDir())
			parent := create(t, x, Descriptor{Type: Permanent, Name: "Ops"})
			return func() error {
				m, err := x.Create(Descriptor{Type: Subagent, ID: idA, ParentAgentID: parent.ID, Name: "n"}, []byte("{}\n"))
				if err == nil && m.Handle != "0/0" {
					t.Errorf("it has the handle %q", m.Handle)
				}
				return err
			}
		}, copies...)

		crashtest.EachStepFails(t, fault, func(t *testing.T) func() error {
			root := t.TempDir()
			x, _ := load(t, root)
			put(t, root, idA, `{"type":"permanent","id":"`+idA+`","name":"copied in"}`)
			return func() error {
				_, _, err := x.Rescan()
				if m, ok := x.Get(idA); ok && m.Handle != "0/" {
					t.Errorf("it has the handle %q", m.Handle)
				}
				return err
			}
		})

		crashtest.EachStepFails(t, fault, func(t *testing.T) func() error {
			root := t.TempDir()
			put(t, root, idA, `{"type":"permanent","id":"`+idA+`","name":"copied in"}`)
			vol := disk.NewVolume(root)
			return func() error {
				x, _, err := Load(vol, root, slog.New(slog.DiscardHandler))
				if err == nil {
					err = x.Close()
				}
				return err
			}
		})
	}
}

// A folder of agents that cannot be listed is not one in which there are none.
func TestAFolderOfAgentsThatCannotBeListed(t *testing.T) {
	root := t.TempDir()
	x, _ := load(t, root)
	m := create(t, x, chat("1"))
	agents := filepath.Join(root, "agents")
	if err := errors.Join(os.Rename(agents, agents+".away"), os.Symlink("agents", agents)); err != nil {
		t.Fatal(err)
	}

	diff, _, err := x.Rescan()
	if err == nil || len(diff.Removed) > 0 {
		t.Errorf("listed: %+v, %v", diff, err)
	}
	if _, ok := x.Get(m.ID); !ok {
		t.Error("an agent is forgotten")
	}
	if _, _, err := Load(nil, root, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("it can be loaded")
	}

	looking, _, err := Look(root, slog.New(slog.DiscardHandler))
	if err == nil {
		if _, err = looking.Whole(); err == nil {
			t.Error("it can be looked at")
		}
	}
}

// Of an agent nothing is known until someone has looked at its state; that it continues is
// then known as well as that it has ended.
func TestWhatIsKnownOfAnEnd(t *testing.T) {
	x, _ := load(t, t.TempDir())
	m := create(t, x, Descriptor{Type: Permanent, Name: "Ops"})
	want := func(what string, ended, known bool) {
		t.Helper()
		if e, k := x.Ended(m.ID); e != ended || k != known {
			t.Errorf("%s: ended %v, known %v; want %v, %v", what, e, k, ended, known)
		}
	}
	want("nobody looked", false, false)
	x.SawEnded(m.ID, false)
	want("it was seen alive", false, true)
	x.SetEnded(m.ID, true)
	x.SawEnded(m.ID, false)
	want("it ended after it was read", true, true)
	x.SetEnded(m.ID, false)
	want("it was started again", false, true)
	x.SawEnded(m.ID, true)
	want("it was seen to have ended", true, true)
	x.Forget(m.ID)
	want("it is gone", false, false)
	x.SetEnded(m.ID, true)
	want("it is gone, and what is said of it comes late", false, false)
}

// Whoever makes an agent hears in one word that there is no room, whichever step says so.
func TestNoRoomForAnAgent(t *testing.T) {
	x, _ := load(t, t.TempDir())
	for fails, full := range map[error]bool{syscall.ENOSPC: true, syscall.EDQUOT: true, disk.ErrFull: true, syscall.EIO: false} {
		_, err := x.CreateWith(chat("1"), []byte("{}\n"), func(string) error { return &os.PathError{Op: "write", Err: fails} })
		if !errors.Is(err, fails) || errors.Is(err, disk.ErrFull) != full || len(x.All()) != 0 {
			t.Errorf("%v: %v", fails, err)
		}
	}
}

// A descriptor whose address someone else got since it was read is read again.
func TestAnAddressThatIsTakenMeanwhile(t *testing.T) {
	root := t.TempDir()
	x, _ := load(t, root)
	put(t, root, idA, `{"type":"user","connector":"telegram","userId":"u","channelId":"1"}`)
	r := x.scan.read(idA)
	m := create(t, x, chat("1"))
	taken, err := x.scan.takeIn([]*reading{r})
	if err != nil || !slices.Equal(taken.stale, []string{idA}) || len(taken.added)+len(taken.found) > 0 {
		t.Errorf("%+v, %v", taken, err)
	}
	if id, _ := x.Lookup(chat("1")); id != m.ID {
		t.Errorf("the address went to %s", id)
	}
}

// Of two readings of a descriptor the older one does not count, whichever comes in last.
func TestAReadingThatIsOverdue(t *testing.T) {
	root := t.TempDir()
	x, _ := load(t, root)
	m := create(t, x, Descriptor{Type: Permanent, Name: "Ops", SystemPrompt: "1"})
	write := func(prompt string) *reading {
		put(t, root, m.ID, `{"type":"permanent","id":"`+m.ID+`","name":"Ops","systemPrompt":"`+prompt+`"}`)
		return x.scan.read(m.ID)
	}
	old := write("older")
	if taken, err := x.scan.takeIn([]*reading{write("the newest")}); err != nil || !slices.Equal(taken.changed, []string{m.ID}) {
		t.Fatalf("%+v, %v", taken, err)
	}
	taken, err := x.scan.takeIn([]*reading{old})
	if err != nil || !slices.Equal(taken.stale, []string{m.ID}) || len(taken.changed) > 0 {
		t.Errorf("%+v, %v", taken, err)
	}
	if got, _ := x.Get(m.ID); got.Descriptor.SystemPrompt != "the newest" {
		t.Errorf("in force is %q", got.Descriptor.SystemPrompt)
	}
}

// An agent of another machine needs no folder, is new once, and is as it was last told.
func TestAgentsOfOtherMachines(t *testing.T) {
	root := t.TempDir()
	x, _ := load(t, root)
	told := Meta{ID: idA, Handle: "Ops", Descriptor: Descriptor{Type: Permanent, ID: idA, Name: "Ops", SystemPrompt: "1"}}
	if !x.Met(told) || x.Met(told) {
		t.Error("it is new once")
	}
	told.Descriptor.SystemPrompt = "2"
	if x.Met(told) {
		t.Error("with a change it is new again")
	}
	if _, _, err := x.Rescan(); err != nil {
		t.Fatal(err)
	}
	if got, ok := x.Get(idA); !ok || got.Descriptor.SystemPrompt != "2" || got.Handle != "Ops" {
		t.Errorf("in force is %+v, %v", got, ok)
	}
	told.Descriptor.SystemPrompt, told.Handle = "1", "Ops-2"
	x.Met(told)
	if got, _ := x.Get(idA); got.Handle != "Ops-2" || got.Descriptor.SystemPrompt != "1" {
		t.Errorf("after another handle in force is %+v", got)
	}
	if id, _ := x.Lookup(told.Descriptor); id != "" && id != idA {
		t.Errorf("its address is that of %q", id)
	}
	if _, err := os.Stat(filepath.Join(root, "agents", idA)); !os.IsNotExist(err) {
		t.Errorf("it has a folder here: %v", err)
	}
}
