package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"daycare/engine/cluster/clustertest"
	"daycare/engine/disk"
)

// answers is a store that says what a test has it say.
type answers struct {
	store
	seq    uint64
	err    error // of publish
	newest logged
	lerr   error // of last
	kept   map[string][]byte
}

func (a answers) publish(context.Context, string, uint64, logged) (uint64, error) {
	return a.seq, a.err
}

func (a answers) last(context.Context, string) (logged, error) { return a.newest, a.lerr }

func (a answers) put(_ context.Context, sha string, data []byte) error {
	a.kept[sha] = data
	return nil
}

// What became of an append that was refused follows from what the log ends with: it was this one, another machine has
// the agent, the servers have lost the end, or nothing is known yet.
func TestWhatBecameOfAnAppend(t *testing.T) {
	t.Parallel()
	wrong := func(known bool, last uint64) error { return &wrongSequence{known, last} }
	asked := errors.New("no answer")
	for name, test := range map[string]struct {
		says answers
		seq  uint64
		want error // errRefused: it is tried again
	}{
		"accepted":            {answers{seq: 11}, 11, nil},
		"not answered":        {answers{err: asked}, 0, asked},
		"nothing is known":    {answers{err: wrong(true, 12), lerr: asked}, 0, asked},
		"it was an earlier":   {answers{err: wrong(true, 11), newest: logged{seq: 11, id: "this"}}, 11, nil},
		"another machine has": {answers{err: wrong(true, 12), newest: logged{seq: 12, id: "x", owner: "me"}}, 0, disk.ErrFenced},
		"one is on its way":   {answers{err: wrong(true, 10), newest: logged{seq: 10, owner: "me"}}, 0, errRefused},
		"a server is behind":  {answers{err: wrong(true, 12), newest: logged{seq: 8, owner: "me"}}, 0, errRefused},
		"it does not say":     {answers{err: wrong(false, 0), newest: logged{seq: 5, owner: "me"}}, 0, errRefused},
		"it is another":       {answers{err: wrong(true, 5), newest: logged{seq: 7, owner: "me"}}, 0, errRefused},
		"all is lost":         {answers{err: wrong(true, 0), newest: logged{}}, 0, errForgotten},
		"the end is lost":     {answers{err: wrong(true, 7), newest: logged{seq: 7, owner: "me"}}, 0, errForgotten},
		"the end, and behind": {answers{err: wrong(true, 7), newest: logged{seq: 5, owner: "me"}}, 0, errForgotten},
		"it is begun anew":    {answers{err: wrong(true, 7), newest: logged{seq: 7, owner: "other"}}, 0, disk.ErrFenced},
		"anew, and behind":    {answers{err: wrong(true, 7), newest: logged{seq: 5, owner: "other"}}, 0, errRefused},
	} {
		n := &Node{}
		n.ctx, n.boot, n.store = t.Context(), "me", test.says
		seq, err := (&unit{node: n}).try(place{last: 10, n: 3}, logged{id: "this", n: 4})
		if test.want == errRefused {
			if e, ok := errors.AsType[*wrongSequence](err); !ok || e != test.says.err {
				t.Errorf("%s: %d, %v", name, seq, err)
			}
			continue
		}
		if seq != test.seq || !errors.Is(err, test.want) {
			t.Errorf("%s: %d, %v, want %d, %v", name, seq, err, test.seq, test.want)
		}
	}
}

// Commits share a message as long as it is no larger than servers take, and one that does not follow is refused alone.
func TestCommitsShareAMessage(t *testing.T) {
	t.Parallel()
	u := &unit{files: map[string]*copied{"a": newCopied([]byte("12345"))}}
	var all []*commit
	pending := func(segments ...segment) *commit {
		c := &commit{segments: segments, done: make(chan error, 1)}
		all, u.pending = append(all, c), append(u.pending, c)
		return c
	}
	large := bytes.Repeat([]byte("x"), bodyMost/3)
	pending(content(opAppend, "a", 5, large))
	hole := pending(content(opAppend, "a", 5, large))
	pending(content(opPut, "b", 0, large))
	pending(content(opAppend, "a", int64(5+len(large)), large))
	pending(content(opAppend, "b", int64(len(large)), []byte("1")))
	take := func(want ...*commit) {
		t.Helper()
		if got := u.take(); !slices.Equal(got, want) {
			t.Errorf("taken are %d commits, want %d", len(got), len(want))
		}
	}
	take(all[0], all[2], all[3])
	select {
	case err := <-hole.done:
		if err == nil || !strings.Contains(err.Error(), "append to a at 5") {
			t.Errorf("one with a hole: %v", err)
		}
	default:
		t.Error("one with a hole waits")
	}
	u.note(all[0].segments)
	u.note(all[2].segments)
	take(all[4])
	take()

	for name, test := range map[string]struct {
		segments []segment
		ok       bool
	}{
		"at the end":       {[]segment{content(opAppend, "c", 0, []byte("12")), content(opAppend, "c", 2, []byte("3"))}, true},
		"before the end":   {[]segment{content(opAppend, "c", 0, []byte("12")), content(opAppend, "c", 1, []byte("3"))}, false},
		"to a removed one": {[]segment{{Op: opRemove, File: "a"}, content(opAppend, "a", 0, []byte("3"))}, true},
		"as if it was":     {[]segment{{Op: opRemove, File: "a"}, content(opAppend, "a", 5, []byte("3"))}, false},
		"to a shorter one": {[]segment{content(opPut, "a", 0, []byte("1")), content(opAppend, "a", 1, []byte("3"))}, true},
		"as if it were":    {[]segment{content(opPut, "a", 0, []byte("1")), content(opAppend, "a", 5, []byte("3"))}, false},
	} {
		if err := u.continues(map[string]int64{}, test.segments); (err == nil) != test.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A log is shortened after many messages, or after more bytes than the files have, and then not soon again.
func TestWhenALogIsShortened(t *testing.T) {
	t.Parallel()
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	a.make("one")
	a.own("one")
	l := a.open("one", "history.jsonl")
	add(t, l, "1", "2")
	u, _, _ := a.unit(a.path("one", "history.jsonl"))
	u.mu.Lock()
	if u.since != 2 || u.written < int64(len("1\n2\n")) {
		t.Errorf("since the claim are %d messages, %d bytes", u.since, u.written)
	}
	u.mu.Unlock()
	large := int64(snapshotAt + 10)
	for _, test := range []struct {
		since   int
		written int64
		live    int64 // more than the files have
		want    bool
	}{{snapshotAfter, snapshotAt, 0, false}, {snapshotAfter + 1, 0, 0, true}, {0, snapshotAt + 1, 0, true}, {0, large, large, false},
		{0, large + 5, large, true}} {
		before, err := a.store.last(t.Context(), "one")
		if err != nil {
			t.Fatal(err)
		}
		u.mu.Lock()
		u.since, u.written = test.since, test.written
		if test.live > 0 {
			u.files["blobs/x"] = newCopied(bytes.Repeat([]byte("x"), int(test.live)))
			a.make("one/blobs")
			if err := os.WriteFile(a.path("one", "blobs/x"), bytes.Repeat([]byte("x"), int(test.live)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		u.mu.Unlock()
		u.shorten()
		log, err := a.store.read(t.Context(), "one")
		if err != nil {
			t.Fatal(err)
		}
		if got := len(log) == 1 && log[0].n == before.n+1; got != test.want {
			t.Errorf("after %d messages and %d bytes, of %d, it is shortened: %v", test.since, test.written, test.live, got)
		}
		u.mu.Lock()
		if again := u.since > 0 || u.written > 0; again == test.want {
			t.Errorf("then since that are %d messages and %d bytes", u.since, u.written)
		}
		u.mu.Unlock()
	}
}

// What is written again from the folder of an owner follows what it has written, and nothing follows what it gave up.
func TestWrittenAgainByItsOwner(t *testing.T) {
	t.Parallel()
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	a.make("one")
	a.own("one")
	add(t, a.open("one", "history.jsonl"), "1", "2")
	u, _, _ := a.unit(a.path("one", "history.jsonl"))
	before := u.place
	until(t, "who is there is known", a.presence.sure)
	at, err := u.seed()
	if err != nil || at.n != before.n+1 || at.last <= before.last || u.place != at {
		t.Errorf("it is at %+v, and was at %+v, %v", at, before, err)
	}
	files, err := a.newest(t.Context(), a.store, "one", time.Second)
	if err != nil || string(files["history.jsonl"].tail) != "1\n2\n" || len(files) != 1 {
		t.Errorf("the log has %v, %v", files, err)
	}
	if err := u.renew(); err != nil {
		t.Errorf("renewed: %v", err)
	}
	if log, err := a.store.read(t.Context(), "one"); err != nil || len(log) > 2 {
		t.Errorf("the log has %d messages, %v", len(log), err)
	}
	if err := os.WriteFile(a.path("one", "history.jsonl"), []byte("edited"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := u.renew(); err == nil || !strings.Contains(err.Error(), "edited") {
		t.Errorf("renewed while it is edited: %v", err)
	}
	if o, err := (offers{a.Node}).answer(demand{Agent: "one", Write: true}); err == nil || !strings.Contains(err.Error(), "edited") {
		t.Errorf("asked to renew it while it is edited: %+v, %v", o, err)
	}
	a.Release("one", false)
	if err := u.commit(&commit{}); !errors.Is(err, disk.ErrFenced) {
		t.Errorf("written after it was given up: %v", err)
	}
	lost := make(chan string, 1)
	a.units.lose = func(agent string) { lost <- agent }
	a.lost(u)
	select {
	case agent := <-lost:
		t.Errorf("%s is lost, and was given up", agent)
	case <-time.After(50 * time.Millisecond):
	}
}

// A long piece is appended in several messages; a large edit that servers do not take is not there.
func TestLongPieces(t *testing.T) {
	t.Parallel()
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	a.make("one")
	a.own("one")
	long := []byte(strings.Repeat("0123456789", 2*appendMost/10+7))
	path := a.path("one", "history.jsonl")
	if err := errors.Join(os.WriteFile(path, long, 0o600), a.Append(path, 0, long)); err != nil {
		t.Fatal(err)
	}
	if n, ok := a.Covers(path); n != int64(len(long)) || !ok {
		t.Errorf("the log has %d bytes, %v", n, ok)
	}
	if n, ok := a.Covers(a.path("other", "history.jsonl")); n != 0 || ok {
		t.Errorf("of another agent there are %d bytes, %v", n, ok)
	}
	files, err := a.newest(t.Context(), a.store, "one", time.Second)
	if err != nil || !bytes.Equal(files["history.jsonl"].tail, long) {
		t.Errorf("the log has %d bytes, %v", len(files["history.jsonl"].tail), err)
	}

	if err := os.WriteFile(a.path("one", "state.json"), []byte(`"`+strings.Repeat("x", inlineMost)+`"`), 0o600); err != nil {
		t.Fatal(err)
	}
	before := a.store
	a.store = refusing{before}
	if err := a.Edited("one", "state.json"); !errors.Is(err, disk.ErrAway) || !errors.Is(err, errRefused) {
		t.Errorf("an edit that is not taken: %v", err)
	}
	a.store = before
	if _, ok := a.owned["one"].files["state.json"]; ok {
		t.Error("the log has it")
	}
}

// Large files are objects, and so is a snapshot that does not fit into a message; what is appended is not.
func TestWhatIsAnObject(t *testing.T) {
	t.Parallel()
	text := func(size int) []byte { return bytes.Repeat([]byte("x"), size) }
	snapshot := segment{Op: opSnapshot}
	var many []segment
	for i := range bodyMost / inlineMost {
		many = append(many, content(opPut, fmt.Sprint(i), 0, text(inlineMost)))
	}
	for name, test := range map[string]struct {
		segments []segment
		objects  []bool // of the result
		kept     int
	}{
		"small":               {[]segment{content(opPut, "a", 0, text(inlineMost))}, []bool{false}, 0},
		"large":               {[]segment{content(opPut, "a", 0, text(inlineMost+1)), content(opPut, "b", 0, nil)}, []bool{true, false}, 1},
		"appended":            {[]segment{content(opAppend, "a", 0, text(appendMost))}, []bool{false}, 0},
		"a small snapshot":    {append([]segment{snapshot}, many[1:]...), make([]bool, len(many)), 0},
		"a large snapshot":    {append([]segment{snapshot}, many...), []bool{true}, 1},
		"changes of too many": {many, make([]bool, len(many)), 0},
	} {
		keep := answers{kept: map[string][]byte{}}
		got, err := fit(t.Context(), keep, test.segments)
		if err != nil {
			t.Fatal(err)
		}
		var objects []bool
		for _, s := range got {
			objects = append(objects, s.Object)
		}
		if !slices.Equal(objects, test.objects) || len(keep.kept) != test.kept {
			t.Errorf("%s: objects are %v, %d are kept", name, objects, len(keep.kept))
		}
		if name == "a large snapshot" {
			inner, err := decode(keep.kept[got[0].SHA])
			if err != nil || len(inner) != len(many) || len(got[0].inner) != len(many) {
				t.Errorf("it has %d files, %v", len(inner), err)
			}
		}
	}
}

// A body that is torn is not read as far as it goes.
func TestTornBodies(t *testing.T) {
	t.Parallel()
	whole := encode([]segment{content(opAppend, "a", 3, []byte("12")), {Op: opRemove, File: "b"}})
	list, err := decode(whole)
	if err != nil || len(list) != 2 || string(list[0].data) != "12" || list[0].At != 3 || list[1].File != "b" {
		t.Errorf("it is %+v, %v", list, err)
	}
	object := `{"op":"put","f":"a","n":99,"sha":"x","obj":true}` + "\n"
	if list, err := decode([]byte(object)); err != nil || len(list) != 1 || !list[0].Object || list[0].N != 99 {
		t.Errorf("an object is %+v, %v", list, err)
	}
	for _, body := range []string{"x", "{}x\n", `{"op":"put"}`, `{"op":"put","n":-1}` + "\n", `{"op":"append","at":-1}` + "\n",
		`{"op":"put","n":3}` + "\n12", `{"op":"put","n":2,"sha":"x"}` + "\n12", string(whole[:len(whole)-1])} {
		if list, err := decode([]byte(body)); !errors.Is(err, errDamaged) {
			t.Errorf("%q is %+v, %v", body, list, err)
		}
	}
}

// All that an agent had is in the folder that another machine builds, and in no other place.
func TestAFolderAsItWas(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	w := &workingCopy{root: root, vol: disk.NewVolume(root), covers: covered, log: slog.New(slog.DiscardHandler)}
	dir := w.folder("one")
	files := map[string]string{"history.jsonl": "same", "inbox.jsonl": "longer", "blobs/x": "other"}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	of := func(text string) stamp { return stamp{int64(len(text)), sum([]byte(text))} }
	old := mark{N: 1, Files: map[string]stamp{"history.jsonl": of("same"), "inbox.jsonl": of("long"), "blobs/x": of("older"),
		"state.json": of("gone")}}
	got, err := w.asItWas(dir, old)
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int64{}
	for name, c := range got {
		sizes[name] = c.size
	}
	if want := map[string]int64{"history.jsonl": 4, "inbox.jsonl": -1, "blobs/x": -1, "state.json": -1}; !maps.Equal(sizes, want) {
		t.Errorf("as they were are %v, want %v", sizes, want)
	}
	found, err := w.list(dir)
	if err != nil || len(found) != 3 || sameAs(found, old.Files) || !sameAs(found, stamps(map[string]*copied{
		"history.jsonl": newCopied([]byte("same")), "inbox.jsonl": newCopied([]byte("longer")), "blobs/x": newCopied([]byte("other"))})) {
		t.Errorf("found are %q, %v", found, err)
	}
	delete(found, "blobs/x")
	if sameAs(found, map[string]stamp{"history.jsonl": of("same"), "inbox.jsonl": of("longer"), "blobs/x": of("other")}) {
		t.Error("without a file it is the same")
	}
}
