package permission

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"daycare/engine/attacktest"
	"daycare/engine/crash"
	"daycare/engine/crash/crashtest"
	"daycare/engine/disk"
)

// A request whose file or whose line in the log may be lost is not asked, not answered.
func TestEveryFailedStepIsReported(t *testing.T) {
	for _, fault := range []string{"eio", "emfile"} {
		t.Run(fault, func(t *testing.T) { eachStepFails(t, fault) })
	}
}

func eachStepFails(t *testing.T, fault string) {
	t.Helper()
	crashtest.EachStepFails(t, fault, func(t *testing.T) func() error {
		q := open(t, t.TempDir())
		return func() error {
			p, fresh, err := q.Ask(agent, owner, request)
			if err != nil && (fresh || p.Token != "" || len(q.List()) > 0) {
				t.Errorf("a request that failed is asked: %v, %+v", fresh, p)
			}
			return err
		}
	})
	crashtest.EachStepFails(t, fault, func(t *testing.T) func() error {
		q := open(t, t.TempDir())
		p := ask(t, q, request)
		return func() error {
			_, err := q.Settle(p.Token, Once, "me", noon)
			if _, gone := q.Get(p.Token); (err == nil) != (gone != nil) {
				t.Errorf("Settle: %v, and the request: %v", err, gone)
			}
			return err
		}
	})
	crashtest.EachStepFails(t, fault, func(t *testing.T) func() error { // a log that was moved away
		q := open(t, t.TempDir())
		p := ask(t, q, request)
		if err := os.Remove(q.store.logPath()); err != nil {
			t.Fatal(err)
		}
		return func() error { _, err := q.Settle(p.Token, Once, "me", noon); return err }
	})
	crashtest.EachStepFails(t, fault, func(t *testing.T) func() error { // an answer that a crash left half moved
		root := t.TempDir()
		leftover(t, root)
		return func() error {
			q, _, err := OpenQueue(disk.NewVolume(root), root, nil, 0)
			if err == nil {
				q.Close()
			}
			return err
		}
	})
	crashtest.EachStepFails(t, fault, func(t *testing.T) func() error {
		root := t.TempDir()
		q := open(t, root)
		p := ask(t, q, request)
		data, err := os.ReadFile(q.store.path(p.Token))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := q.Settle(p.Token, Once, "me", noon); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(q.store.path(p.Token), data, 0o600); err != nil {
			t.Fatal(err)
		}
		return func() error { return errors.Join(q.SetAside(), q.Late(func(Pending, Pending) {})) }
	})
}

// leftover is a queue in root with a settled request whose file is still there.
func leftover(t *testing.T, root string) Pending {
	t.Helper()
	q := open(t, root)
	p := ask(t, q, request)
	data, err := os.ReadFile(q.store.path(p.Token))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Settle(p.Token, Once, "me", noon); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(q.Close(), os.WriteFile(q.store.path(p.Token), data, 0o600)); err != nil {
		t.Fatal(err)
	}
	return p
}

// To look at a queue changes nothing in it, and needs no queue.
func TestReadQueue(t *testing.T) {
	root := t.TempDir()
	q, findings, err := ReadQueue(nil, root, time.Now, 0)
	if err != nil || len(findings)+len(q.List()) != 0 || q.Close() != nil {
		t.Fatalf("of a workspace without requests: %v, %v", findings, err)
	}
	if disk.Exists(filepath.Join(root, folder)) {
		t.Error("to look made the folder")
	}
	p := leftover(t, root)
	if q, _, err = ReadQueue(nil, root, time.Now, 0); err != nil || len(q.List()) != 1 || !disk.Exists(q.store.path(p.Token)) {
		t.Errorf("of a queue with a request: %v, %v", q.List(), err)
	}
}

// A folder that cannot be read may have any request in it; a file that cannot be, or is
// none, costs only itself.
func TestQueueThatCannotBeRead(t *testing.T) {
	root := t.TempDir()
	if err := os.Symlink(folder, filepath.Join(root, folder)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ReadQueue(nil, root, time.Now, 0); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("ReadQueue: %v", err)
	}
	if _, _, err := OpenQueue(disk.NewVolume(root), root, nil, 0); err == nil {
		t.Error("OpenQueue says nothing")
	}

	root = t.TempDir()
	q := open(t, root)
	ask(t, q, request)
	q.Close()
	if err := errors.Join(os.Mkdir(filepath.Join(q.store.dir, "folder.json"), 0o700),
		os.Symlink("loop.json", filepath.Join(q.store.dir, "loop.json")),
		os.Symlink("nothing", filepath.Join(q.store.dir, "gone.json"))); err != nil {
		t.Fatal(err)
	}
	q, findings, err := OpenQueue(disk.NewVolume(root), root, nil, 0)
	if err != nil || len(findings) != 2 || len(q.List()) != 1 {
		t.Fatalf("requests %v, findings %v, %v", q.List(), findings, err)
	}
	q.Close()
	if err := os.MkdirAll(filepath.Join(q.store.dir, ".tmp-x", "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, err := OpenQueue(disk.NewVolume(root), root, nil, 0); err == nil {
		t.Error("a folder that cannot be recovered is opened")
	}
}

// A queue that cannot be opened leaves nothing open.
func TestAQueueThatIsNotOpenedIsClosed(t *testing.T) {
	root := t.TempDir()
	leftover(t, root)
	before := openFiles(t)
	for range 8 {
		crash.Arm(t, "emfile@permissions.sync#1")
		if _, _, err := OpenQueue(disk.NewVolume(root), root, nil, 0); err == nil {
			t.Fatal("it is open")
		}
	}
	crash.Arm(t, "")
	if after := openFiles(t); after > before+3 {
		t.Errorf("%d descriptors are open, %d were before", after, before)
	}
}

// A request that daycare may not read is a finding, and keeps nobody from the others.
func TestARequestThatMayNotBeReadHidesNoOther(t *testing.T) {
	attacktest.AsUser(t)
	if os.Getuid() == 0 {
		return // root may read every file
	}
	root := t.TempDir()
	q := open(t, root)
	shut, good := ask(t, q, request), ask(t, q, Request{Tag: "@web"})
	q.Close()
	if err := os.Chmod(q.store.path(shut.Token), 0); err != nil {
		t.Fatal(err)
	}
	q, findings, err := OpenQueue(disk.NewVolume(root), root, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if len(findings) != 1 || findings[0].File != q.store.path(shut.Token) || !strings.Contains(findings[0].Remedy, "mode") {
		t.Errorf("findings are %v", findings)
	}
	if list := q.List(); len(list) != 1 || list[0].Token != good.Token {
		t.Errorf("there wait %+v", list)
	}
}

// A request that RFC 3339 cannot say is not asked.
func TestAskInTheYear10000(t *testing.T) {
	root := t.TempDir()
	q := open(t, root)
	q.now = func() time.Time { return time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }
	if p, fresh, err := q.Ask(agent, owner, request); err == nil || fresh || p.Token != "" {
		t.Errorf("%+v, %v, %v", p, fresh, err)
	}
	if _, fresh, err := q.Ask(agent, owner, Request{Tag: "nonsense"}); err == nil || fresh {
		t.Errorf("a request for nonsense: %v, %v", fresh, err)
	}
}

// A request is found by its hash, of its agent alone, and the newest expiry is that of
// what is asked from then on.
func TestFindAndExpiry(t *testing.T) {
	q := open(t, t.TempDir())
	old := ask(t, q, request)
	if p, ok := q.Find(agent, old.SHA256); !ok || p.Token != old.Token {
		t.Errorf("%+v, %v", p, ok)
	}
	for _, other := range [][2]string{{"other", old.SHA256}, {agent, "other"}} {
		if p, ok := q.Find(other[0], other[1]); ok {
			t.Errorf("%q: %+v", other, p)
		}
	}
	q.SetExpiry(time.Minute)
	q.now = func() time.Time { return noon.Add(time.Hour) }
	p := ask(t, q, Request{Tag: "@web"})
	if !p.ExpiresAt.Equal(noon.Add(time.Hour+time.Minute)) || !old.ExpiresAt.Equal(noon.Add(DefaultExpiry)) {
		t.Errorf("they expire at %v and %v", old.ExpiresAt, p.ExpiresAt)
	}
	if list := q.List(); len(list) != 2 || list[0].Token != old.Token || list[1].Token != p.Token {
		t.Errorf("%+v, want the oldest first", list)
	}
}

// A user's edit of the log stays, and the decision comes behind it.
func TestLogEditedByHand(t *testing.T) {
	root := t.TempDir()
	q := open(t, root)
	p := ask(t, q, request)
	if err := os.WriteFile(q.store.logPath(), []byte("a note\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Settle(p.Token, Once, "me", noon); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(q.store.logPath())
	if err != nil || !strings.HasPrefix(string(data), "a note\n{") || !strings.Contains(string(data), p.Token) {
		t.Errorf("the log has %q, %v", data, err)
	}
	other := ask(t, q, Request{Tag: "@web"})
	if err := errors.Join(os.Remove(q.store.logPath()), os.Mkdir(q.store.logPath(), 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Settle(other.Token, Once, "me", noon); err == nil {
		t.Error("a decision that no log has is settled")
	}
	if _, err := q.Get(other.Token); err != nil {
		t.Errorf("the request: %v", err)
	}
	if _, err := Log(root); err == nil {
		t.Error("a folder is read as a log")
	}
	if _, _, err := OpenQueue(disk.NewVolume(root), root, nil, 0); err == nil {
		t.Error("a queue is opened that has no log")
	}
	if err := os.WriteFile(filepath.Join(q.store.dir, "more.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := q.SetAside(); err == nil {
		t.Error("SetAside cannot read the log and says nothing")
	}
}

// Late removes the files of requests that were answered, and no others: not those that
// wait, nor what is wrong, nor what no log has.
func TestLateLeavesOthers(t *testing.T) {
	root := t.TempDir()
	stale := leftover(t, root)
	q, _, err := ReadQueue(nil, root, time.Now, 0)
	if err != nil {
		t.Fatal(err)
	}
	q.store.vol = disk.NewVolume(root)
	q.store.dir = filepath.Join(root, folder)
	// It is in the log and waits: its file is not yet removed by who settles it.
	for _, name := range []string{"broken.json", "{}.json"} {
		if err := os.WriteFile(filepath.Join(q.store.dir, name), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	unlogged, err := encode(Pending{Token: "unlogged", Agent: agent, Request: request, SHA256: request.SHA256(agent),
		AskedAt: noon, ExpiresAt: noon}, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(q.store.path("unlogged"), unlogged, 0o600); err != nil {
		t.Fatal(err)
	}
	if late := late(t, q); len(late) != 0 {
		t.Errorf("late are %+v", late)
	}
	for _, name := range []string{stale.Token, "broken", "{}", "unlogged"} {
		if !disk.Exists(q.store.path(name)) {
			t.Errorf("%s was removed", name)
		}
	}
}

// What stands in a file says nothing once its request is settled, or is being settled.
func TestAnswerWhileItIsSettled(t *testing.T) {
	q := open(t, t.TempDir())
	p := ask(t, q, request)
	found := p
	found.Decision = Always
	if a, f := q.answerIn(p, found, nil); a.Decision != Always || f != nil {
		t.Errorf("while it waits: %+v, %v", a, f)
	}
	q.mu.Lock()
	release := q.claim(p.Token)
	q.mu.Unlock()
	if a, f := q.answerIn(p, found, nil); a.Decision != "" || f != nil {
		t.Errorf("while it is settled: %+v, %v", a, f)
	}
	q.mu.Lock()
	release()
	q.mu.Unlock()
	if _, err := q.Settle(p.Token, Once, "me", noon); err != nil {
		t.Fatal(err)
	}
	if a, f := q.answerIn(p, Pending{}, fmt.Errorf("gone: %w", os.ErrNotExist)); a.Decision != "" || f != nil {
		t.Errorf("once it is settled: %+v, %v", a, f)
	}
}

// The hash that binds an approval is in files: it stays what it was.
func TestHashesStay(t *testing.T) {
	for want, r := range map[string]Request{
		"940592b0f0e3a6713269d8cc938128025d5253fa5c1c5928c7682f38f22cbb6d": request,
		"7018c6fc2e03fe9658084a904ff1c2ed62c269870cfa025d83e96a8ebe94879c": {Tag: "@exec:sh",
			Detail: Detail{Command: "sh x"}, Sandbox: NoSandbox, Scripts: []Script{{Path: "/x", SHA256: "00"}}},
	} {
		if got := r.SHA256(agent); got != want {
			t.Errorf("%s has the hash %s, want %s", r.Tag, got, want)
		}
	}
}

// An edit that was put right and made wrong again is said again; a queue has a clock of
// its own if it is given none.
func TestAnEditIsReportedAgainAfterItWasPutRight(t *testing.T) {
	root := t.TempDir()
	q, _, err := OpenQueue(disk.NewVolume(root), root, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	p := ask(t, q, request)
	if d := time.Since(p.AskedAt); d < 0 || d > time.Minute {
		t.Errorf("asked at %v", p.AskedAt)
	}
	for _, now := range [][2]string{{"git push origin", "rm -rf"}, {"rm -rf", "git push origin"}, {"git push origin", "rm -rf"}} {
		edit(t, q, p, now[0], now[1])
		if _, found := q.Answered(); (len(found) == 1) != (now[1] == "rm -rf") {
			t.Errorf("with %q: %v", now[1], found)
		}
	}
}

// A workspace in which nothing was asked has an empty log; a queue is not opened over one that a power
// cut may take back.
func TestTheLogOfAnsweredRequests(t *testing.T) {
	root := t.TempDir()
	if list, err := Log(root); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
	q := open(t, root)
	ask(t, q, request)
	settle(t, q, ask(t, q, Request{Tag: "@web:x"}), Once)
	q.Close()
	crash.Arm(t, "eio@permissions.sync#1")
	if _, _, err := OpenQueue(disk.NewVolume(root), root, nil, 0); !errors.Is(err, disk.ErrFailed) {
		t.Errorf("a log that cannot be synced: %v", err)
	}
}
