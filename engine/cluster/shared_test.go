package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"daycare/engine/cluster/clustertest"
	"daycare/engine/disk"
)

// tend has a machine keep its shared files, until the test ends or stop is called.
func (m *host) tend() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = m.Tend(ctx) // until ctx ends
	}()
	stop = func() { cancel(); <-done } // it writes files: it has to be over before they are removed
	m.t.Cleanup(stop)

	return stop
}

// save writes a shared file as an editor does; "" removes it.
func (m *host) save(name, text string) {
	m.t.Helper()
	path := filepath.Join(m.root, name)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if text == "" {
		err = os.Remove(path)
	} else if err == nil {
		err = os.WriteFile(path+"~", []byte(text), 0o600)
		err = errors.Join(err, os.Rename(path+"~", path))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.t.Fatal(err)
	}
}

// has is what a machine has of a shared file; "": nothing.
func (m *host) has(name string) string {
	data, err := os.ReadFile(filepath.Join(m.root, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.t.Fatal(err)
	}
	return string(data)
}

// asides are the contents that a machine kept beside a file.
func (m *host) asides(name string) (list []string) {
	kept, err := filepath.Glob(filepath.Join(m.root, name+".conflict-*"))
	if err != nil {
		m.t.Fatal(err)
	}
	for _, path := range kept {
		data, err := os.ReadFile(path)
		if err != nil {
			m.t.Fatal(err)
		}
		list = append(list, string(data))
	}
	return list
}

// A file that belongs to all is the same on all machines, whoever changes it, also when one of
// them was off.
func TestSharedFiles(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	large := strings.Repeat("large ", 50_000)
	a.save("memory/entities/anna b.md", "likes tea")
	a.save("cron/task/files/draft.txt", "not shared")
	a.save("cron/task/.hidden", "not shared")
	b.save("SOUL.md", "kind")
	b.save("cron/large.md", large)
	a.tend()
	stop := b.tend()
	until(t, "both have all", func() bool {
		return b.has("memory/entities/anna b.md") == "likes tea" && a.has("SOUL.md") == "kind" && a.has("cron/large.md") == large
	})
	if got := b.has("cron/task/files/draft.txt") + b.has("cron/task/.hidden"); got != "" {
		t.Errorf("what is not shared was: %q", got)
	}

	b.save("memory/entities/anna b.md", "likes coffee")
	a.save("SOUL.md", "")
	until(t, "a change and a removal", func() bool {
		return a.has("memory/entities/anna b.md") == "likes coffee" && b.has("SOUL.md") == ""
	})

	root := t.TempDir()
	if _, err := Export(t.Context(), Config{Servers: []string{s.ClientURL()}, Root: root, Volume: disk.NewVolume(root), Covers: covered,
		Shared: sharedByTests, Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Error(err)
	}
	copied := &host{t: t, root: root}
	if copied.has("memory/entities/anna b.md") != "likes coffee" || copied.has("cron/large.md") != large || copied.has("SOUL.md") != "" {
		t.Error("the copy is another one")
	}

	stop()
	b.Close()
	a.save("memory/entities/anna b.md", "")
	a.save("cron/task/TASK.md", "theirs")
	a.save("cron/task/runs.jsonl", "1\n2\n")
	until(t, "the servers have it", func() bool {
		_, err := a.files.keep.handles.files.Get(t.Context(), sharedKey("memory/entities/anna b.md"))
		_, err2 := a.files.keep.handles.files.Get(t.Context(), sharedKey("cron/task/runs.jsonl"))
		return err != nil && err2 == nil
	})
	b.save("cron/task/TASK.md", "ours")
	b.save("cron/task/runs.jsonl", "2\n3")
	b = join(t, s, b.root)
	b.tend()
	until(t, "the machine has what happened", func() bool {
		return b.has("cron/task/TASK.md") == "theirs" && b.has("cron/task/runs.jsonl") == "1\n2\n3\n" &&
			b.has("memory/entities/anna b.md") == ""
	})
	until(t, "and the other one", func() bool { return a.has("cron/task/runs.jsonl") == "1\n2\n3\n" })
	if got := b.asides("cron/task/TASK.md"); !slices.Equal(got, []string{"ours"}) {
		t.Errorf("kept are %q", got)
	}
	until(t, "no empty folder is left", func() bool { return !disk.Exists(filepath.Join(b.root, "memory/entities")) })
}

// Nothing leads out of the folders that are shared: no link of a user, and no name in the bucket.
func TestSharedFilesStayInside(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	elsewhere := t.TempDir()
	if err := os.WriteFile(filepath.Join(elsewhere, "x.md"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, filepath.Join(b.root, "memory")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(elsewhere, "x.md"), filepath.Join(b.root, "SOUL.md")); err != nil {
		t.Fatal(err)
	}
	hostile := []string{"../out.md", "memory/../../out.md", "/tmp/out.md", "settings.yaml", "memory/.x", "cron/x/files/a", "cron//x"}
	for _, name := range hostile {
		value := `{"sha":"` + sum([]byte("x")) + `","data":"eA=="}`
		if _, err := a.files.keep.handles.files.Create(t.Context(), sharedKey(name), []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	a.save("memory/x.md", "theirs")
	a.save("SOUL.md", "theirs")
	a.save("cron/last.md", "theirs")
	a.tend()
	b.tend()
	until(t, "the machine has all", func() bool { return b.has("cron/last.md") == "theirs" })
	for _, name := range hostile {
		if _, known := b.files.of(name); known {
			t.Errorf("%q is taken", name)
		}
	}
	if got := b.has("SOUL.md") + b.has("memory/x.md"); got != "minemine" {
		t.Errorf("what links lead to is %q", got)
	}
}

// What a machine removed it does not bring back while it has not heard of its own removal.
func TestARemovedSharedFileStaysAway(t *testing.T) {
	t.Parallel()
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	for n := range 50 {
		name := fmt.Sprintf("memory/%d.md", n)
		for _, text := range []string{"text", "", "", "again", "", ""} {
			a.save(name, text)
			if err := a.files.agree(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			if got := a.has(name); got != text {
				t.Fatalf("it has %q, want %q", got, text)
			}
		}
	}
}

// A file whose name does not come again stays away when it was removed elsewhere, also where a machine ended before it noted that it
// had shared it; another one is shared again.
func TestARemovedSharedFileIsFinal(t *testing.T) {
	t.Parallel()
	s, root := clustertest.Serve(t, clustertest.Store(t), 0), t.TempDir()
	a := join(t, s, root)
	bucket := newHost(t, s).files.keep.handles.files
	shared := func(name string) bool {
		_, err := bucket.Get(t.Context(), sharedKey(name))
		return err == nil
	}
	stop := a.tend()
	for _, name := range []string{"memory/once.md", "memory/note.md"} {
		a.save(name, "text")
		until(t, name+" is shared", func() bool { return shared(name) })
	}
	stop()
	a.Close()
	if err := os.Remove(filepath.Join(root, sharedFile)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"memory/once.md", "memory/note.md"} {
		if err := bucket.Delete(t.Context(), sharedKey(name)); err != nil {
			t.Fatal(err)
		}
	}

	a = join(t, s, root)
	a.tend()
	until(t, "the note is shared again", func() bool { return shared("memory/note.md") })
	until(t, "what was removed is gone", func() bool { return a.has("memory/once.md") == "" })
	if shared("memory/once.md") {
		t.Error("what was removed is shared again")
	}
}

// Who needs a shared file hears that another machine changed it, before it is removed here, and of nothing that it changed itself. While
// no server answers what was changed here waits.
func TestSharedFilesAreHeardOf(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	var said []string
	a := joinWith(t, s, t.TempDir(), testLease, func(c *Config) {
		shared := *sharedByTests
		shared.Changed = func(name string) { said = append(said, "changed "+name) }
		shared.Leaving = func(name string) { said = append(said, "leaving "+name) }
		c.Shared = &shared
	})
	b := newHost(t, s)
	const name, ledger = "memory/a.md", "cron/c/runs.jsonl"
	until(t, "all is known", func() bool { _, _, whole := a.files.take(); return whole })
	changed := func(name, text string) {
		t.Helper()
		b.save(name, text)
		until(t, "the other machine shares it", func() bool { return b.files.agree(t.Context(), name) == nil })
		until(t, "it is settled", func() bool {
			f, known := a.files.of(name)
			return known && (f.SHA == sum([]byte(text)) || f.SHA == "" && text == "") && a.files.settle(t.Context())
		})
	}
	changed(name, "one")
	changed(name, "")
	a.save(ledger, "1\n")
	changed(ledger, "2\n")
	a.save(name, "mine")
	a.files.note(name)
	here := a.files.away
	a.files.away = func() bool { return true }
	if a.files.settle(t.Context()) {
		t.Error("without servers it is settled")
	}
	a.files.away = here
	if !a.files.settle(t.Context()) {
		t.Error("with servers it is not settled")
	}
	if f, known := a.files.of(name); !known || f.SHA != sum([]byte("mine")) {
		t.Error("what was changed without servers is not shared")
	}
	if want := []string{"changed " + name, "leaving " + name, "changed " + ledger}; !slices.Equal(said, want) {
		t.Errorf("said is %q, want %q", said, want)
	}
}

// A file that is too large for all machines stays where it is, with a warning, and holds nothing up: no other file, no leader and
// no import.
func TestSharedFilesThatAreTooLarge(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	for _, size := range []int{sharedMost, sharedMost + 1, sharedMost + 2, 2 * sharedMost} {
		var said saying
		a := joinWith(t, s, t.TempDir(), testLease, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&said, nil)) })
		name := fmt.Sprintf("memory/%d.md", size)
		a.save(name, strings.Repeat("x", size))
		until(t, "all is known", func() bool { _, _, whole := a.files.take(); return whole })
		a.files.note(name)
		if !a.files.settle(t.Context()) {
			t.Errorf("a file of %d bytes is tried again", size)
		}
		_, known := a.files.of(name)
		if fits := size == sharedMost; known != fits || len(a.has(name)) != size {
			t.Errorf("of %d bytes others have it: %v; here it has %d bytes", size, known, len(a.has(name)))
		}
		a.Close()
		if text := said.String(); strings.Contains(text, "too large") != !known || !known && !strings.Contains(text, name) {
			t.Errorf("of %d bytes: said is %q", size, text)
		}

		files := map[string]string{name: strings.Repeat("x", size), fmt.Sprintf("memory/small%d.md", size): "small"}
		done, err := Import(t.Context(), elsewhere(s.ClientURL(), workspaceWith(t, files)), Load{})
		if err != nil || done.Files != 1 || (len(done.Kept) == 1 && done.Kept[0] == name) == known {
			t.Errorf("of %d bytes: imported is %+v, %v", size, done, err)
		}
	}
}

// Servers that were wiped are given the files again, and nobody removes them.
func TestSharedFilesOfWipedServers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := clustertest.Serve(t, dir, 0)
	a, b := newHost(t, s), newHost(t, s)
	a.save("memory/x.md", "kept")
	a.tend()
	b.tend()
	until(t, "both have it", func() bool { return b.has("memory/x.md") == "kept" })

	wiped(t, s, dir)
	until(t, "the servers have it again", func() bool {
		_, err := a.files.keep.handles.files.Get(t.Context(), sharedKey("memory/x.md"))
		return err == nil
	})
	b.save("memory/x.md", "changed")
	until(t, "a change", func() bool { return a.has("memory/x.md") == "changed" })
}

// wiped starts a server again, at the same place, with nothing in its store.
func wiped(t *testing.T, s *server.Server, dir string) *server.Server {
	t.Helper()
	port := s.Addr().(interface{ AddrPort() netip.AddrPort }).AddrPort().Port()
	s.Shutdown()
	s.WaitForShutdown()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	return clustertest.Serve(t, dir, int(port))
}

// record adds a line to a ledger, as the clocks do.
func (m *host) record(name, line string) {
	m.t.Helper()
	path := filepath.Join(m.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		m.t.Fatal(err)
	}
	release := m.vol.Turn(path)
	defer release()
	l, _, err := m.vol.OpenLog(path, disk.LogOptions{Name: "runs"})
	if err != nil {
		m.t.Fatal(err)
	}
	add(m.t, l, line)
	if err := l.Close(); err != nil {
		m.t.Fatal(err)
	}
}

// No line is lost that is added to a ledger while the lines of other machines come.
func TestLedgersLoseNoLine(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	hosts := []*host{newHost(t, s), newHost(t, s), newHost(t, s)}
	const name, each = "cron/c/runs.jsonl", 60
	var adding sync.WaitGroup
	for i, h := range hosts {
		h.tend()
		adding.Go(func() {
			for n := range each {
				h.record(name, fmt.Sprint(i, " ", n))
				time.Sleep(time.Duration(rand.IntN(40)) * time.Millisecond)
			}
		})
	}
	adding.Wait()

	until(t, "all are the same", func() bool {
		all := hosts[0].has(name)
		return strings.Count(all, "\n") >= each*len(hosts) && hosts[1].has(name) == all && hosts[2].has(name) == all
	})
	newest := map[string]int{}
	for line := range strings.Lines(hosts[0].has(name)) {
		var i, n int
		if _, err := fmt.Sscan(line, &i, &n); err != nil {
			t.Fatal(err)
		}
		if at := fmt.Sprint(i); n != newest[at] {
			t.Fatalf("line %d of machine %d comes after %d others of it", n, i, newest[at])
		}
		newest[fmt.Sprint(i)]++
	}
	for i := range hosts {
		if newest[fmt.Sprint(i)] != each {
			t.Errorf("%d lines of machine %d", newest[fmt.Sprint(i)], i)
		}
		if kept := hosts[i].asides(name); len(kept) > 0 {
			t.Errorf("kept aside are %d versions", len(kept))
		}
	}
}

// Lines of a machine that was replaced come before those of its successor, which followed what both had.
func TestUnited(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ theirs, ours, base, want string }{
		{"1 2 b3 b4", "1 2 a3", "1 2", "1 2 a3 b3 b4"},
		{"1 2 a3 b3 b4", "1 2 b3 b4 b5", "", "1 2 a3 b3 b4 b5"},
		{"", "1 2", "", "1 2"},
		{"1 2", "", "", "1 2"},
		{"3 4", "1 2 3 4", "", "1 2 3 4"},
		{"1 2 3", "2 1 4", "", "1 2 4 3"},
		// One of them was rotated.
		{"3 4 b5", "1 2 3 4 a5", "1 2 3 4", "3 4 a5 b5"},
		{"1 2 3 4 b5", "3 4 a5", "1 2 3 4", "3 4 a5 b5"},
		{"3 4 b5", "1 2 3 4 a5", "1 2", "3 4 a5 b5"},
		{"b5", "1 2 a5", "1 2", "a5 b5"},
		{"3 4 b5", "1 2 3 4 a5", "1", "2 3 4 a5 b5"},
	} {
		text := func(words string) []byte {
			return []byte(strings.Join(append(strings.Fields(words), ""), "\n"))
		}
		if got := united(text(test.theirs), text(test.ours), sum(text(test.base))); string(got) != string(text(test.want)) {
			t.Errorf("%q and %q: %q", test.theirs, test.ours, got)
		}
	}
}

// Lines that a machine rotated away do not come back with those that another one added meanwhile.
func TestRotatedLedger(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	const name = "cron/c/runs.jsonl"
	for i := range 4 {
		a.record(name, fmt.Sprint("line", i))
	}
	stops := []func(){a.tend(), b.tend()}
	until(t, "both have it and know that", func() bool {
		return b.has(name) == a.has(name) && a.files.caughtUp(t.Context()) == nil && b.files.caughtUp(t.Context()) == nil
	})
	for _, stop := range stops {
		stop()
	}
	a.save(name, "line2\nline3\n")
	a.record(name, "a")
	b.record(name, "b")
	a.tend()
	b.tend()
	until(t, "both have the same", func() bool {
		return a.has(name) == b.has(name) && strings.Contains(a.has(name), "a\n") && strings.Contains(a.has(name), "b\n")
	})
	if got := a.has(name); strings.Contains(got, "line1") || !strings.HasPrefix(got, "line2\nline3\n") {
		t.Errorf("the ledger is %q", got)
	}
}

// A machine that leads has what the last leader left, and knows of changes without looking around.
func TestLeaderHasWhatTheLastOneLeft(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	a.tend()
	stop := b.tend()
	until(t, "both know all", func() bool { return a.files.caughtUp(t.Context()) == nil && b.files.caughtUp(t.Context()) == nil })
	stop()
	a.save("cron/c/runs.jsonl", "left\n")
	until(t, "the servers have it", func() bool {
		_, err := a.files.keep.handles.files.Get(t.Context(), sharedKey("cron/c/runs.jsonl"))
		return err == nil
	})

	ctx, cancel := context.WithCancel(t.Context())
	led := make(chan string, 1)
	go func() {
		_ = b.Lead(ctx, "clocks", func(context.Context) error { led <- b.has("cron/c/runs.jsonl"); return nil })
	}()
	select {
	case got := <-led:
		t.Errorf("leads with %q before it has what was left", got)
	case <-time.After(200 * time.Millisecond):
	}
	b.tend()
	if got := <-led; got != "left\n" {
		t.Errorf("leads with %q", got)
	}
	cancel()
}

// Machines that change, remove and stop at random come to have the same, and of what was written
// last to a file nothing is lost.
func TestSharedFilesConverge(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	hosts := []*host{newHost(t, s), newHost(t, s), newHost(t, s)}
	stops := make([]func(), len(hosts))
	for i, h := range hosts {
		stops[i] = h.tend()
	}
	names := []string{"memory/a.md", "memory/b.md", "cron/c/runs.jsonl"}
	lines := map[string]bool{}
	for n := range 120 {
		i, name := rand.IntN(len(hosts)), names[rand.IntN(len(names))]
		h := hosts[i]
		switch {
		case n%10 == 9 && stops[i] != nil:
			stops[i]()
			stops[i] = nil
		case n%10 == 4 && stops[i] == nil:
			h.Close()
			hosts[i] = join(t, s, h.root)
			stops[i] = hosts[i].tend()
		case strings.HasSuffix(name, ".jsonl"):
			line := fmt.Sprint("line ", n)
			lines[line] = true
			if err := os.MkdirAll(filepath.Dir(filepath.Join(h.root, name)), 0o700); err != nil {
				t.Fatal(err)
			}
			h.record(name, line)
		default:
			h.save(name, fmt.Sprint(n))
		}
	}
	for i, h := range hosts {
		if stops[i] == nil {
			h.Close()
			hosts[i] = join(t, s, h.root)
			stops[i] = hosts[i].tend()
		}
	}
	same := func(name string) bool {
		return hosts[0].has(name) == hosts[1].has(name) && hosts[0].has(name) == hosts[2].has(name)
	}
	for _, name := range names {
		until(t, name+" is the same", func() bool { return same(name) })
	}
	for line := range lines {
		until(t, line+" is there", func() bool {
			return same(names[2]) && slices.Contains(strings.Split(hosts[0].has(names[2]), "\n"), line)
		})
	}
}

// deafBucket is a bucket that takes what is written into it, and whose answers are lost.
type deafBucket struct{ jetstream.KeyValue }

func (u deafBucket) Create(ctx context.Context, key string, value []byte, o ...jetstream.KVCreateOpt) (uint64, error) {
	_, err := u.KeyValue.Create(ctx, key, value, o...)
	return 0, errors.Join(err, context.DeadlineExceeded)
}

func (u deafBucket) Update(ctx context.Context, key string, value []byte, last uint64) (uint64, error) {
	_, err := u.KeyValue.Update(ctx, key, value, last)
	return 0, errors.Join(err, context.DeadlineExceeded)
}

// What a machine saves after a version whose arrival it did not hear of replaces that version: both are its user's.
func TestASharedFileWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, before string }{{"new", ""}, {"changed", "first"}} {
		t.Run(test.name, func(t *testing.T) {
			a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
			const name = "memory/x.md"
			until(t, "all is known", func() bool { _, _, whole := a.files.take(); return whole })
			if test.before != "" {
				a.save(name, test.before)
				if err := a.files.agree(t.Context(), name); err != nil {
					t.Fatal(err)
				}
			}

			answering := a.files.keep
			mute := *answering
			mute.handles.files = deafBucket{mute.handles.files}
			a.files.keep = &mute
			a.save(name, "second")
			if err := a.files.agree(t.Context(), name); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("sharing without an answer: %v", err)
			}
			until(t, "the version is heard of", func() bool { f, _ := a.files.of(name); return f.SHA == sum([]byte("second")) })

			a.files.keep = answering
			a.save(name, "third")
			if err := a.files.agree(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			if f, _ := a.files.of(name); f.SHA != sum([]byte("third")) || a.has(name) != "third" || len(a.asides(name)) > 0 {
				t.Errorf("the bucket has %q, the machine %q, kept aside are %q", f.Data, a.has(name), a.asides(name))
			}
		})
	}
}
