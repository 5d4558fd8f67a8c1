package address

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"daycare/engine/disk"
	"daycare/engine/fault"
	"daycare/engine/message"
)

// A handle is serial numbers as users count, without leading zeros; one at the top may be
// written without its slash.
func TestWhatIsAHandle(t *testing.T) {
	for s, want := range map[string]string{"0": "0/", "0/": "0/", "12/": "12/", "3/0": "3/0", "3/0/": "3/0", "3/0/11": "3/0/11"} {
		if !validHandle(s) || canonical(s) != want {
			t.Errorf("%q is a handle: %v, written %q, want %q", s, validHandle(s), canonical(s), want)
		}
	}

	for _, s := range []string{"", "/", "00", "01/", "-1", "3//0", "a", "3/a", "3/-0", "+3", " 3", "3/0//"} {
		if validHandle(s) {
			t.Errorf("%q is a handle", s)
		}
	}

	for _, tt := range []struct {
		handle, parent string
		serial         int
	}{{"0/", "", 0}, {"12/", "", 12}, {"3/0", "3/", 0}, {"3/0/11", "3/0", 11}} {
		parent, serial := split(tt.handle)
		if parent != tt.parent || serial != tt.serial || join(parent, serial) != tt.handle {
			t.Errorf("%s is %d below %q, and together %q", tt.handle, serial, parent, join(parent, serial))
		}
	}
}

// Handles are in the order in which users count, and so are the texts that they are found by.
func TestTheOrderOfHandles(t *testing.T) {
	order := []string{"0/", "0/0", "0/0/5", "0/2", "0/10", "1/", "2/", "9/", "9/9", "10/", "10/0", "100/"}
	mixed := slices.Clone(order)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	if slices.SortFunc(mixed, compareHandles); !slices.Equal(mixed, order) {
		t.Errorf("sorted they are %v", mixed)
	}

	for _, a := range order {
		for _, b := range order {
			if byText := cmp.Compare(ordered(a), ordered(b)); byText != compareHandles(a, b) {
				t.Errorf("%s and %s compare as %d by their texts", a, b, byText)
			}
		}
		if compareHandles(a, "") >= 0 || compareHandles("", a) <= 0 {
			t.Errorf("an agent without a handle comes before %s", a)
		}
	}

	if compareHandles("", "") != 0 {
		t.Error("two agents without a handle differ")
	}
}

// A name of many agents is refused with the first twenty and how many more there are.
func TestHowManyAgentsANameFits(t *testing.T) {
	x, _ := load(t, t.TempDir())
	for n := range maxCandidates + 3 {
		create(t, x, Descriptor{Type: Permanent, Name: "twin"})
		_, err := x.Resolve("twin")
		var ambiguous *Ambiguous
		if n == 0 {
			if err != nil {
				t.Fatal(err)
			}
			continue
		}
		if !errors.As(err, &ambiguous) || len(ambiguous.Candidates) != min(n+1, maxCandidates+1) {
			t.Fatalf("of %d agents: %v", n+1, err)
		}

		last := ambiguous.Candidates[len(ambiguous.Candidates)-1]
		if more := n + 1 - maxCandidates; more > 0 && last != fmt.Sprintf("and %d more", more) || more <= 0 &&
			strings.Contains(last, "more") {
			t.Errorf("of %d agents the last candidate is %q", n+1, last)
		}
		if n != 1 {
			continue
		}

		f := ambiguous.Fault()
		if !errors.Is(err, fault.Ambiguous) || f.Hint != "use one of: 0/, 1/" || f.Route != fault.Ambiguous.Hint ||
			f.Code != fault.Ambiguous.Code || !strings.HasPrefix(err.Error(), `"twin" matches several agents: 0/ `) {
			t.Errorf("%v: %+v", err, f)
		}
	}
}

// The agent of this machine's terminal is found by the name that it had once.
func TestTheAgentOfTheTerminal(t *testing.T) {
	x, _ := load(t, t.TempDir())
	own := create(t, x, Descriptor{Type: User, Connector: "terminal", ChannelID: "default"})
	if own.Name != Own {
		t.Errorf("it is called %s", own.Name)
	}

	for _, ref := range []string{"main", "terminal:default"} {
		if id, err := x.Resolve(ref); id != own.ID || err != nil {
			t.Errorf("%s: %s, %v", ref, id, err)
		}
	}

	for d, want := range map[Descriptor]string{{Type: User, Connector: "c", ChannelID: "1"}: "c:1", {Type: Cron}: "cron",
		{Type: User, Connector: "terminal", ChannelID: "default", Name: "Ada"}: "Ada", {Type: Heartbeat}: "heartbeat"} {
		if got := NameOf(d); got != want {
			t.Errorf("%+v is called %q, want %q", d, got, want)
		}
	}
}

// What differs between two descriptors is named, whether it came, went or changed.
func TestWhatChangedInADescriptor(t *testing.T) {
	was := Descriptor{Type: Permanent, ID: idA, Name: "a", Description: "goes"}
	now := Descriptor{Type: Permanent, ID: idA, Name: "b", Route: message.Address{Connector: "comes"}}
	if got := Changed(was, now); !slices.Equal(got, []string{"description", "name", "route"}) {
		t.Errorf("changed are %q", got)
	}
	if got := Changed(was, was); got != nil {
		t.Errorf("of the same changed %q", got)
	}
}

// The copy of a descriptor is written when there is something to keep, and only of agents that
// are found by their address.
func TestWhenADescriptorIsKept(t *testing.T) {
	root := t.TempDir()
	x, _ := load(t, root)
	m := create(t, x, chat("1"))
	colleague := create(t, x, Descriptor{Type: Permanent, Name: "Ops"})
	copied := func(id string) string { return filepath.Join(root, "agents", id, keptFile) }
	if _, err := os.Stat(copied(colleague.ID)); !os.IsNotExist(err) {
		t.Errorf("a colleague has a copy: %v", err)
	}
	mark := func() {
		t.Helper()
		info, err := os.Stat(copied(m.ID))
		if err == nil {
			err = os.WriteFile(copied(m.ID), []byte("marked"), 0o600)
		}
		if err == nil {
			err = os.Chtimes(copied(m.ID), time.Time{}, info.ModTime())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	marked := func() bool {
		data, err := os.ReadFile(copied(m.ID))
		if err != nil {
			t.Fatal(err)
		}
		return string(data) == "marked"
	}
	mark()
	if x.Keep(m.ID); !marked() {
		t.Error("a copy of the same version was written again")
	}
	path := filepath.Join(root, "agents", m.ID, descriptorFile)
	put(t, root, m.ID, `{"type":"user"`)
	if x.Keep(m.ID); !marked() {
		t.Error("the copy of a broken one was written")
	}
	put(t, root, m.ID, `{"type":"user","connector":"telegram","userId":"u","channelId":"1","name":"Ada"}`)
	if x.Keep(m.ID); !marked() {
		t.Error("a version that is not in force was kept")
	}
	if _, _, err := x.Rescan(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, time.Time{}, time.Unix(1_700_000_000, 0)); err != nil {
		t.Fatal(err)
	}
	looking, _, err := Load(nil, root, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if looking.Keep(m.ID); !marked() {
		t.Error("who only looks has written a copy")
	}
	x.Keep(m.ID)
	if info, err := os.Stat(copied(m.ID)); marked() || err != nil || info.ModTime().Unix() != 1_700_000_000 {
		t.Errorf("the edit was not kept with its time: %v, %v", info, err)
	}
	if last := x.scan.lastGood(m.ID); last == nil || last.Name != "Ada" {
		t.Errorf("the last good one is %+v", last)
	}
	x.Keep("none") // an agent that is gone has nothing to keep
}

// A pipe or a folder in the place of a descriptor blocks nobody, and is said.
func TestADescriptorOfAnotherKind(t *testing.T) {
	for kind, make := range map[string]func(path string) error{
		"pipe":    func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"folder":  func(path string) error { return os.Mkdir(path, 0o700) },
		"nothing": func(string) error { return nil },
	} {
		root := t.TempDir()
		dir := filepath.Join(root, "agents", idA)
		if err := errors.Join(os.MkdirAll(dir, 0o700), make(filepath.Join(dir, descriptorFile))); err != nil {
			t.Fatal(err)
		}
		x, found := load(t, root)
		if len(found) != 1 || found[0].ID != "descriptor-missing" || len(x.All()) != 0 {
			t.Errorf("%s: %+v, %d agents", kind, found, len(x.All()))
		}
	}
}

// A number that someone wrote, however large, does not run the numbers out, and no number is given twice.
func TestLargeNumbersOfHandles(t *testing.T) {
	root := t.TempDir()
	lines := `{"handle":"9223372036854775806/","id":"a"}
{"handle":"1073741823/","id":"b"}
{"handle":"1073741824/","id":"c"}
`
	if err := os.Mkdir(filepath.Join(root, "agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "agents", "handles.jsonl"), []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	x := newIndexIn(t, root)
	if got := x.NextSerial(); got != "1073741825" {
		t.Errorf("the next number is %s", got)
	}
	for _, want := range []string{"1073741825/", "1073741826/"} {
		m := create(t, x, chat(want))
		if m.Handle != want {
			t.Errorf("handle %s, want %s", m.Handle, want)
		}
	}
}

// A folder in which nothing can be changed is only looked at.
func TestLookingOnlyChangesNothing(t *testing.T) {
	root := t.TempDir()
	m := create(t, newIndexIn(t, root), chat("1"))
	x, _, err := Load(nil, root, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Remove(m.ID); !errors.Is(err, ErrReadOnly) {
		t.Errorf("remove: %v", err)
	}
	if err := x.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if _, err := os.Stat(filepath.Join(root, "agents", m.ID)); err != nil {
		t.Errorf("the agent is gone: %v", err)
	}
	if empty, found, err := Load(nil, t.TempDir(), slog.New(slog.DiscardHandler)); err != nil || len(found)+len(empty.All()) != 0 {
		t.Errorf("where nothing is: %v, %v", found, err)
	}
}

func newIndexIn(t *testing.T, root string) *Index {
	t.Helper()
	x, _, err := Load(disk.NewVolume(root), root, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

// Of a family is who was made by one of it, over however many agents; a circle, which a hand
// edit can make, ends.
func TestFamilies(t *testing.T) {
	for want, m := range map[string]Meta{
		House:                   {ID: "a", Descriptor: Descriptor{Type: Permanent}},
		"person\x00chat\x00ada": {ID: "a", Descriptor: Descriptor{Type: User, Connector: "chat", UserID: "ada"}},
		"agent\x00a":            {ID: "a", Descriptor: Descriptor{Type: User, Connector: "chat"}},
		"agent\x00b":            {ID: "b", Descriptor: Descriptor{Type: Cron, UserID: "x"}},
	} {
		if got := FamilyOf(m); got != want {
			t.Errorf("%+v is of the family %q, want %q", m, got, want)
		}
	}

	root := t.TempDir()
	for id, by := range map[string]string{idA: idB, idB: idA} {
		put(t, root, id, `{"type":"permanent","id":"`+id+`","name":"x","createdBy":"`+by+`"}`)
	}
	x, _ := load(t, root)
	n := 0
	x.Colleagues(House, func(Meta) bool { n++; return true })
	if n != 2 {
		t.Errorf("%d agents of a circle are found, want 2", n)
	}
}
