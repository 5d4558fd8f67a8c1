package address

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/crash/crashtest"
	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/message"
)

func TestMain(m *testing.M) {
	os.Setenv("TMPDIR", crashtest.Memory())
	m.Run()
}

var update = flag.Bool("update", false, "write the golden files anew")

const (
	idA = "tz4a98xxat96iws9zmbrgj3a"
	idB = "bz4a98xxat96iws9zmbrgj3b"
	idC = "tz4a00xxat96iws9zmbrgj3c"
)

func load(t testing.TB, root string) (*Index, []finding.Finding) {
	t.Helper()
	x, found, err := Load(disk.NewVolume(root), root, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	t.Cleanup(func() { x.Close() })
	return x, found
}

func create(t testing.TB, x *Index, d Descriptor) Meta {
	t.Helper()
	m, err := x.Create(d, []byte("{}\n"))
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	return m
}

func chat(channel string) Descriptor {
	return Descriptor{Type: User, Connector: "telegram", ChannelID: channel, UserID: "u"}
}

// put makes an agent's folder by hand.
func put(t testing.TB, root, id, descriptor string) {
	t.Helper()
	dir := filepath.Join(root, "agents", id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, descriptorFile), []byte(descriptor), 0o600); err != nil {
		t.Fatal(err)
	}
}

func handlesOf(x *Index) map[string]string {
	all := map[string]string{}
	for _, m := range x.All() {
		all[m.ID] = m.Handle
	}
	return all
}

func places(found []finding.Finding) []string {
	var all []string
	for _, f := range found {
		all = append(all, fmt.Sprintf("%s %d:%d", f.ID, f.Line, f.Column))
	}
	return all
}

func TestCreateAndLoadAgain(t *testing.T) {
	root := t.TempDir()
	x, found := load(t, root)
	if len(found) > 0 || len(x.All()) > 0 {
		t.Fatalf("empty: %v", found)
	}
	first := create(t, x, chat("1"))
	again := create(t, x, chat("1"))
	if first != again || first.Handle != "0/" || first.Name != "telegram:1" || !ValidID(first.ID) {
		t.Errorf("first %+v, again %+v", first, again)
	}

	other := chat("1")
	other.UserID, other.Name = "v", "Ada"
	named := create(t, x, other)
	if named.Handle != "1/" || named.Name != "Ada" {
		t.Errorf("named %+v", named)
	}

	child := create(t, x, Descriptor{Type: Subagent, ParentAgentID: named.ID, Name: "reader"})
	grandchild := create(t, x, Descriptor{Type: Subagent, ID: idA, ParentAgentID: child.ID, Name: "deep"})
	if child.Handle != "1/0" || grandchild.Handle != "1/0/0" || child.Descriptor.ID != child.ID {
		t.Errorf("child %+v, grandchild %+v", child, grandchild)
	}
	cron := create(t, x, Descriptor{Type: Cron, ID: idB})
	beat := create(t, x, Descriptor{Type: Heartbeat})
	if cron.ID != idB || beat != create(t, x, Descriptor{Type: Heartbeat}) {
		t.Errorf("cron %+v, heartbeat %+v", cron, beat)
	}
	if state, err := os.ReadFile(filepath.Join(root, "agents", first.ID, "state.json")); string(state) != "{}\n" || err != nil {
		t.Errorf("state %q, %v", state, err)
	}

	back, found := load(t, root)
	if diff := cmp.Diff(x.All(), back.All()); diff != "" || len(found) > 0 {
		t.Errorf("loaded again (%v):\n%s", found, diff)
	}
	if id, ok := back.Lookup(chat("1")); id != first.ID || !ok {
		t.Errorf("lookup: %s, %v", id, ok)
	}
	if _, ok := back.Lookup(Descriptor{Type: Permanent}); ok {
		t.Error("a type without an address was looked up")
	}
	if got := back.NextSerial(); got != "4" {
		t.Errorf("next serial %s", got)
	}

	for _, bad := range []Descriptor{{Type: User}, {Type: "x"}, {Type: Cron}, {Type: Cron, ID: "../x"}} {
		if m, err := back.Create(bad, nil); err == nil {
			t.Errorf("%+v became %+v", bad, m)
		}
	}
}

func TestAllInNaturalOrder(t *testing.T) {
	x, _ := load(t, t.TempDir())
	var parents []Meta
	for i := range 12 {
		parents = append(parents, create(t, x, chat(fmt.Sprint(i))))
	}
	for _, p := range []int{2, 10, 2} {
		create(t, x, Descriptor{Type: Subagent, ParentAgentID: parents[p].ID, Name: "n"})
	}

	var got []string
	for _, m := range x.All() {
		got = append(got, m.Handle)
	}
	if want := "0/ 1/ 2/ 2/0 2/1 3/ 4/ 5/ 6/ 7/ 8/ 9/ 10/ 10/0 11/"; strings.Join(got, " ") != want {
		t.Errorf("%v", got)
	}
}

func TestResolve(t *testing.T) {
	root := t.TempDir()
	x, _ := load(t, root)
	a := create(t, x, Descriptor{Type: Permanent, ID: idA, Name: "Ops"})
	create(t, x, Descriptor{Type: Permanent, ID: idB, Name: "twin"})
	create(t, x, Descriptor{Type: Permanent, ID: idC, Name: "twin"})
	create(t, x, Descriptor{Type: Subagent, ParentAgentID: a.ID, Name: "1"})

	for ref, want := range map[string]string{idA: idA, "0": idA, "0/": idA, "1/": idB, "Ops": idA, "bz4a": idB, "tz4a98": idA} {
		if got, err := x.Resolve(ref); got != want || err != nil {
			t.Errorf("%q: %s, %v; want %s", ref, got, err, want)
		}
	}
	if got, err := x.Resolve("0/0"); err != nil || got == idA {
		t.Errorf("child: %s, %v", got, err)
	}

	for _, ref := range []string{"", "/", "tz4", "ops", "9", "0/7", "-1", "telegram:1"} {
		if got, err := x.Resolve(ref); !errors.Is(err, message.ErrUnknownAgent) {
			t.Errorf("%q: %s, %v", ref, got, err)
		}
	}

	for ref, want := range map[string][]string{"twin": {"1/ " + idB, "2/ " + idC}, "tz4a": {"0/ " + idA, "2/ " + idC}} {
		_, err := x.Resolve(ref)
		var ambiguous *Ambiguous
		if !errors.As(err, &ambiguous) {
			t.Fatalf("%q: %v", ref, err)
		}
		if diff := cmp.Diff(&Ambiguous{ref, want}, ambiguous); diff != "" {
			t.Error(diff)
		}
	}
}

func TestFirstMessagesAtOnceMakeOneAgent(t *testing.T) {
	root := t.TempDir()
	x, _ := load(t, root)
	var mu sync.Mutex
	made := map[string]map[string]bool{}
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			d := chat(fmt.Sprint(i % 5))
			if i%6 == 5 {
				d = Descriptor{Type: Subagent, ID: idA, ParentAgentID: idB, Name: "n"}
			}
			m, err := x.Create(d, []byte("{}"))
			if err != nil {
				t.Error(err)
			}

			x.All()
			if _, _, err := x.Rescan(); err != nil {
				t.Error(err)
			}
			if _, ok := x.Get(m.ID); !ok {
				t.Errorf("agent %s is not in the index", m.ID)
			}

			mu.Lock()
			defer mu.Unlock()
			k := d.Key()
			if made[k] == nil {
				made[k] = map[string]bool{}
			}

			made[k][m.ID] = true
		})
	}

	wg.Wait()
	for k, agents := range made {
		if len(agents) != 1 {
			t.Errorf("%q has %d agents", k, len(agents))
		}
	}

	again, found := load(t, root)
	if diff := cmp.Diff(x.All(), again.All()); diff != "" || len(found) > 0 {
		t.Errorf("loaded again: %v\n%s", found, diff)
	}
	seen := map[string]bool{}
	for _, h := range handlesOf(x) {
		if seen[h] {
			t.Errorf("handle %s twice", h)
		}
		seen[h] = true
	}
}

func TestRemovedSerialsAreNotUsedAgain(t *testing.T) {
	root := t.TempDir()
	x, _ := load(t, root)
	create(t, x, chat("0"))
	gone := create(t, x, chat("1"))
	trash, err := x.Remove(gone.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := x.Get(gone.ID); ok || !disk.Exists(filepath.Join(trash, descriptorFile)) ||
		filepath.Dir(trash) != filepath.Join(root, "trash") {
		t.Errorf("removed to %s", trash)
	}
	if _, err := x.Remove(gone.ID); !errors.Is(err, message.ErrUnknownAgent) {
		t.Errorf("removed twice: %v", err)
	}

	again, _ := load(t, root)
	if m := create(t, again, chat("1")); m.Handle != "2/" || m.ID == gone.ID {
		t.Errorf("made again as %+v", m)
	}

	// What comes back from the trash is the same agent; its address is taken now.
	if err := os.Rename(trash, filepath.Join(root, "agents", gone.ID)); err != nil {
		t.Fatal(err)
	}
	_, found, err := again.Rescan()
	if err != nil || len(found) != 1 || found[0].ID != "descriptor-duplicate" {
		t.Errorf("found %v, %v", found, err)
	}

	put(t, root, gone.ID, `{"type":"user","connector":"telegram","channelId":"7"}`)
	diff, _, err := again.Rescan()
	if m, _ := again.Get(gone.ID); m.Handle != "1/" || err != nil || len(diff.Added) != 1 {
		t.Errorf("back from the trash: %+v, %+v, %v", m, diff, err)
	}
}

// An agent is durable when the content of its two files, their names, its own name and its handle are.
func TestBarriersOfANewAgent(t *testing.T) {
	root := t.TempDir()
	vol := disk.NewVolume(root)
	x, _, err := Load(vol, root, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	create(t, x, chat("first")) // makes the file of handles, too

	before, _ := vol.Stats()
	create(t, x, chat("second"))
	if after, _ := vol.Stats(); after-before != 5 {
		t.Errorf("%d barriers, want 5", after-before)
	}
}
