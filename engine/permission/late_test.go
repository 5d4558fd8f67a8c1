package permission

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"daycare/engine/attacktest"
	"daycare/engine/disk"
)

// edited is the content of a request's file with an answer in it.
func edited(t *testing.T, q *Queue, p Pending, d Decision) []byte {
	t.Helper()
	content, err := os.ReadFile(q.store.path(p.Token))
	if err != nil {
		t.Fatal(err)
	}
	return []byte(strings.Replace(string(content), `"decision": null`, `"decision": "`+string(d)+`"`, 1))
}

func settle(t *testing.T, q *Queue, p Pending, d Decision) {
	t.Helper()
	if _, err := q.Settle(p.Token, d, "ada", noon); err != nil {
		t.Fatal(err)
	}
}

// leftFiles are the files of requests in the folder, waiting or settled.
func leftFiles(t *testing.T, q *Queue) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(q.store.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != logName {
			names = append(names, e.Name())
		}
	}
	return names
}

// Whoever has the file open while another answer is settled, and saves after that, is told:
// whether the file is written in place or from its beginning, and however long it takes.
func TestAnAnswerWrittenIntoAnOpenFileAfterAnotherIsTold(t *testing.T) {
	for name, flag := range map[string]int{"in place": os.O_RDWR, "from the beginning": os.O_RDWR | os.O_TRUNC} {
		t.Run(name, func(t *testing.T) {
			q := open(t, t.TempDir())
			p := ask(t, q, request)
			answer := edited(t, q, p, Always)
			f, err := os.OpenFile(q.store.path(p.Token), flag, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			settle(t, q, p, Once)
			if early := late(t, q); len(early) > 0 {
				t.Errorf("before it is saved, told is %v", early)
			}
			if _, err := f.WriteAt(answer[:50], 0); err != nil {
				t.Fatal(err)
			}
			if half := late(t, q); flag&os.O_TRUNC != 0 && len(half) > 0 {
				t.Errorf("of a half answer told is %v", half)
			}
			if _, err := f.WriteAt(answer, 0); err != nil {
				t.Fatal(err)
			}
			if said := late(t, q); len(said) != 1 || said[0] != Always {
				t.Errorf("told is %v, want always", said)
			}
			if left := leftFiles(t, q); len(left) > 0 {
				t.Errorf("left are %v", left)
			}
		})
	}
}

// The file of a settled request is kept for a minute, and then as long as someone has it
// open for writing (where the system can tell).
func TestFilesOfSettledRequestsGo(t *testing.T) {
	q := open(t, t.TempDir())
	now := noon
	q.now = func() time.Time { return now }
	p := ask(t, q, request)
	answer := edited(t, q, p, Deny)
	f, err := os.OpenFile(q.store.path(p.Token), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	known := disk.OpenForWriting(f)
	settle(t, q, p, Always)
	if at, ok := q.Next(); !ok || !at.Equal(noon.Add(saving)) {
		t.Errorf("the next look is at %v, %v, want %v", at, ok, noon.Add(saving))
	}
	if now = noon.Add(saving - time.Nanosecond); len(late(t, q)) > 0 || len(leftFiles(t, q)) != 1 {
		t.Errorf("within its minute left are %v", leftFiles(t, q))
	}
	if at, ok := q.Next(); !ok || !at.Equal(noon.Add(saving)) {
		t.Errorf("after a look within its minute the next one is at %v, %v, want %v", at, ok, noon.Add(saving))
	}
	if known {
		now = noon.Add(saving)
		if said := late(t, q); len(said) > 0 || len(leftFiles(t, q)) != 1 {
			t.Errorf("while it is open told is %v, left are %v", said, leftFiles(t, q))
		}
		if at, ok := q.Next(); !ok || !at.Equal(now.Add(saving)) {
			t.Errorf("the look after that is at %v, %v", at, ok)
		}
		if _, err := f.WriteAt(answer, 0); err != nil {
			t.Fatal(err)
		}
		if said := late(t, q); len(said) != 1 || said[0] != Deny {
			t.Errorf("told is %v, want deny", said)
		}
	}
	now = now.Add(saving)
	if said := late(t, q); len(said) > 0 || len(leftFiles(t, q)) > 0 {
		t.Errorf("when its time is over, told is %v, left are %v", said, leftFiles(t, q))
	}
	if at, ok := q.Next(); ok {
		t.Errorf("there is something to do at %v", at)
	}
}

// An answer that replaced the file in one step, just before another one was settled, and a
// file that was removed to deny, are told.
func TestWhatHappenedToTheFileJustBeforeIsTold(t *testing.T) {
	q := open(t, t.TempDir())
	p := ask(t, q, request)
	q.store.logging.Lock()
	settled := make(chan error, 1)
	go func() {
		_, err := q.Settle(p.Token, Once, "ada", noon)
		settled <- err
	}()
	for q.waits(p.Token) {
		time.Sleep(time.Millisecond)
	}
	temp := filepath.Join(t.TempDir(), "saved")
	if err := errors.Join(os.WriteFile(temp, edited(t, q, p, Always), 0o600), os.Rename(temp, q.store.path(p.Token))); err != nil {
		t.Fatal(err)
	}
	q.store.logging.Unlock()
	if err := <-settled; err != nil {
		t.Fatal(err)
	}
	if said := late(t, q); len(said) != 1 || said[0] != Always {
		t.Errorf("told is %v, want always", said)
	}

	for first, want := range map[Decision]string{Once: "[deny]", Always: "[deny]", Prefix: "[deny]", Deny: "[]", Expired: "[]"} {
		p := ask(t, q, Request{Tag: "@exec:git push", Prefix: "@exec:git", Detail: Detail{Command: "git push " + string(first)}})
		if err := os.Remove(q.store.path(p.Token)); err != nil {
			t.Fatal(err)
		}
		settle(t, q, p, first)
		if said := late(t, q); fmt.Sprint(said) != want || len(late(t, q)) > 0 {
			t.Errorf("a file removed before %s: told is %v, want %s, once", first, said, want)
		}
	}
}

// An answer saved while the daemon is not running is told when it starts, and so is one that
// was set aside and not told before a crash.
func TestLateAnswersAreToldAfterACrash(t *testing.T) {
	root := t.TempDir()
	q := open(t, root)
	p, other := ask(t, q, request), ask(t, q, Request{Tag: "@web"})
	answer := edited(t, q, p, Always)
	if err := os.WriteFile(q.store.path(other.Token), edited(t, q, other, Deny), 0o600); err != nil {
		t.Fatal(err)
	}
	settle(t, q, p, Once)
	settle(t, q, other, Once)
	q.Close() // before it looks
	// The crash came between the line in the log and the new name.
	if err := os.WriteFile(q.store.path(p.Token), answer, 0o600); err != nil {
		t.Fatal(err)
	}
	q = open(t, root)
	said := map[Decision]Decision{}
	if err := q.Late(func(late, first Pending) { said[late.Decision] = first.Decision }); err != nil {
		t.Fatal(err)
	}
	if len(said) != 2 || said[Always] != Once || said[Deny] != Once || len(q.List()) > 0 {
		t.Errorf("told are %v, and %v wait", said, q.List())
	}
	q.now = func() time.Time { return noon.Add(saving) }
	if late(t, q); len(leftFiles(t, q)) > 0 {
		t.Errorf("left are %v", leftFiles(t, q))
	}
}

// The first answer in the log is the one that others are late for, whatever a user wrote behind it.
func TestTheFirstAnswerInTheLogWasFirst(t *testing.T) {
	root := t.TempDir()
	q := open(t, root)
	p := ask(t, q, request)
	answer := edited(t, q, p, Always)
	settle(t, q, p, Once)
	q.Close()
	line, err := os.ReadFile(q.store.logPath())
	if err != nil {
		t.Fatal(err)
	}
	again := strings.Replace(string(line), `"once"`, `"deny"`, 1)
	if again == string(line) {
		t.Fatalf("the log has %s", line)
	}
	if err := errors.Join(os.WriteFile(q.store.logPath(), append(line, "not JSON\n"+again...), 0o600),
		os.WriteFile(q.store.path(p.Token), answer, 0o600)); err != nil {
		t.Fatal(err)
	}

	q = open(t, root)
	var said []Decision
	if err := q.Late(func(late, first Pending) { said = append(said, late.Decision, first.Decision) }); err != nil {
		t.Fatal(err)
	}
	if len(said) != 2 || said[0] != Always || said[1] != Once {
		t.Errorf("told is %v, want always, after once", said)
	}
}

// A half answer is looked at again as long as somebody has its file open, also after its minute.
func TestAHalfAnswerWhoseMinuteIsOver(t *testing.T) {
	q := open(t, t.TempDir())
	now := noon
	q.now = func() time.Time { return now }
	q.asides.now = q.now
	p := ask(t, q, request)
	answer := edited(t, q, p, Always)
	f, err := os.OpenFile(q.store.path(p.Token), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if !disk.OpenForWriting(f) {
		t.Skip("whether a file is open can only be asked on Linux")
	}
	settle(t, q, p, Once)
	if err := f.Truncate(50); err != nil {
		t.Fatal(err)
	}
	if now = noon.Add(2 * saving); len(late(t, q)) > 0 || len(leftFiles(t, q)) != 1 {
		t.Errorf("of a half answer left are %v", leftFiles(t, q))
	}
	if _, err := f.WriteAt(answer, 0); err != nil {
		t.Fatal(err)
	}
	if said := late(t, q); len(said) != 1 || said[0] != Always {
		t.Errorf("told is %v, want always", said)
	}
}

// The file of a settled request that is gone again before it is set aside is nothing to look at.
func TestAFileThatIsGoneBeforeItIsSetAside(t *testing.T) {
	q := open(t, t.TempDir())
	p := ask(t, q, request)
	settle(t, q, p, Always)
	if said := late(t, q); len(said) > 0 {
		t.Fatalf("told is %v", said)
	}
	before := len(q.asides.list)
	if err := q.asides.anew(p); err != nil || len(q.asides.list) != before {
		t.Errorf("%v, %d are looked at, %d were before", err, len(q.asides.list), before)
	}
}

// A file that cannot be looked at is an error, and keeps nobody from the others; one that is
// no request says nothing.
func TestALateAnswerBesideAFileThatCannotBeRead(t *testing.T) {
	q := open(t, t.TempDir())
	now := noon
	q.now = func() time.Time { return now }
	folder, loop, broken, gone, good := ask(t, q, Request{Tag: "@web:a.example"}), ask(t, q, Request{Tag: "@web:b.example"}),
		ask(t, q, Request{Tag: "@web:c.example"}), ask(t, q, Request{Tag: "@web:d.example"}), ask(t, q, request)
	path := func(p Pending) string { return q.store.path(p.Token) }
	answer := edited(t, q, good, Always)
	if err := errors.Join(os.Remove(path(folder)), os.MkdirAll(filepath.Join(path(folder), "in the way"), 0o700),
		os.Remove(path(loop)), os.Symlink("loop", filepath.Join(q.store.dir, "loop")), os.Symlink("loop", path(loop)),
		os.WriteFile(path(broken), []byte("{"), 0o600), os.WriteFile(path(good), answer, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, p := range []Pending{folder, loop, broken, gone, good} {
		settle(t, q, p, Once)
	}
	files, err := disk.Glob(q.store.dir, gone.Token+".*")
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	if said := late(t, q); len(said) != 1 || said[0] != Always {
		t.Errorf("told is %v, want always", said)
	}
	now = noon.Add(saving)
	if err := q.Late(func(late, _ Pending) { t.Errorf("told is %+v", late) }); err == nil || !strings.Contains(err.Error(), folder.Token) {
		t.Errorf("of a folder that cannot be removed: %v", err)
	}
	if left := leftFiles(t, q); len(left) != 2 || !strings.HasPrefix(left[0]+left[1], folder.Token) &&
		!strings.HasPrefix(left[1], folder.Token) {
		t.Errorf("left are %v, want the folder and the link's target", left)
	}
	if _, ok := q.Next(); ok {
		t.Error("what cannot be removed is looked at for ever")
	}
}

// Whoever was first in the file is not late; whoever says the same as someone else, or
// something else afterwards, is.
func TestWhoIsLate(t *testing.T) {
	for name, tt := range map[string]struct {
		by, first, saved string
		want             string
	}{
		"the file itself":              {byFile, "once", "once", "[]"},
		"the file, and another answer": {byFile, "once", "always", "[always]"},
		"the same as another person":   {"ada", "once", "once", "[once]"},
		"not what another person says": {"ada", "deny", "always", "[always]"},
	} {
		q := open(t, t.TempDir())
		p := ask(t, q, request)
		if err := os.WriteFile(q.store.path(p.Token), edited(t, q, p, Decision(tt.saved)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := q.Settle(p.Token, Decision(tt.first), tt.by, noon); err != nil {
			t.Fatal(err)
		}
		if said := late(t, q); fmt.Sprint(said) != tt.want {
			t.Errorf("%s: told is %v, want %s", name, said, tt.want)
		}
	}
}

// A file that cannot be read to its end is an error, and is kept.
func TestALateAnswerThatTheDiskDoesNotReadIsKept(t *testing.T) {
	const unread = "/proc/self/mem" // it opens, and reading its beginning is an error
	if _, err := os.ReadFile(unread); !errors.Is(err, syscall.EIO) {
		t.Skip(err)
	}
	q := open(t, t.TempDir())
	p := ask(t, q, request)
	if err := errors.Join(os.Remove(q.store.path(p.Token)), os.Symlink(unread, q.store.path(p.Token))); err != nil {
		t.Fatal(err)
	}
	settle(t, q, p, Once)
	q.now = func() time.Time { return noon.Add(time.Hour) }
	if err := q.Late(func(Pending, Pending) { t.Error("it is told") }); !errors.Is(err, syscall.EIO) || len(leftFiles(t, q)) != 1 {
		t.Errorf("%v, left are %v", err, leftFiles(t, q))
	}
}

// Late answers are looked at again after a failure that passes, however long it lasts.
func TestLateAnswersAfterAPassingFailure(t *testing.T) {
	q := open(t, t.TempDir())
	now := noon
	q.now = func() time.Time { return now }
	p := ask(t, q, request)
	if err := os.WriteFile(q.store.path(p.Token), edited(t, q, p, Always), 0o600); err != nil {
		t.Fatal(err)
	}
	settle(t, q, p, Once)
	now = noon.Add(time.Hour)
	withoutDescriptors(t, func() {
		if err := q.Late(func(late, _ Pending) { t.Errorf("told is %+v", late) }); !errors.Is(err, syscall.EMFILE) {
			t.Errorf("without descriptors: %v", err)
		}
	})
	if said := late(t, q); len(said) != 1 || said[0] != Always {
		t.Errorf("told is %v, want always", said)
	}
}

// withoutDescriptors calls do while this process can open no file.
func withoutDescriptors(t *testing.T, do func()) {
	t.Helper()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	none := before
	none.Cur = 3
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Skip(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
			t.Fatal(err)
		}
	}()
	do()
}

// An answer that is saved at the moment in which another one is settled is told, once,
// whoever looks for it.
func TestAnAnswerSavedWhileAnotherIsSettledIsTold(t *testing.T) {
	q := open(t, t.TempDir())
	for round := range 20 {
		p := ask(t, q, Request{Tag: fmt.Sprintf("@web:host%d.example", round)})
		saved := edited(t, q, p, Always)
		var beside sync.WaitGroup
		var mu sync.Mutex
		told := 0
		look := func() {
			n := len(late(t, q))
			mu.Lock()
			told += n
			mu.Unlock()
		}
		settling := make(chan struct{})
		beside.Go(func() {
			close(settling)
			settle(t, q, p, Once)
		})
		beside.Go(func() {
			<-settling
			time.Sleep(time.Duration(rand.IntN(400)) * time.Microsecond)
			if err := os.WriteFile(q.store.path(p.Token), saved, 0o600); err != nil {
				t.Error(err)
			}
			look()
		})
		beside.Go(look)
		beside.Wait()
		look()
		if told != 1 {
			t.Fatalf("round %d: it was told %d times", round, told)
		}
	}
}

// Many editors move the old file away and then write a new one. A look in between is no
// denial: what counts is what was saved.
func TestAFileThatAnEditorReplacesIsNoDenial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := open(t, t.TempDir())
		p := ask(t, q, request)
		answer := edited(t, q, p, Always)
		if err := os.Rename(q.store.path(p.Token), q.store.path(p.Token)+"~"); err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(replacing / 2)
			if err := os.WriteFile(q.store.path(p.Token), answer, 0o600); err != nil {
				t.Error(err)
			}
		}()
		if got, found := q.Answered(); len(got) != 1 || got[0].Decision != Always || len(found) > 0 {
			t.Errorf("the answer is %+v, findings %v; want always", got, found)
		}
	})
}

// What cannot be seen of the files of requests is not a request without a file: whoever looks is told.
func TestSetAsideOfAFolderThatCannotBeRead(t *testing.T) {
	attacktest.AsUser(t)
	if os.Getuid() == 0 {
		return // root may read every folder
	}
	q := open(t, t.TempDir())
	settle(t, q, ask(t, q, request), Once)
	if err := os.Chmod(q.store.dir, 0o300); err != nil {
		t.Fatal(err)
	}
	if err := q.SetAside(); err == nil {
		t.Error("a folder that cannot be read has no late answers")
	}
	if err := os.Chmod(q.store.dir, 0o700); err != nil {
		t.Fatal(err)
	}
}
