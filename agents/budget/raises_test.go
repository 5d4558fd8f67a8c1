package budget

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"daycare/engine/crash/crashtest"
	"daycare/engine/permission"
)

// spend asks until a limit refuses, and returns which, and how many requests it allowed.
func spend(t *testing.T, w *world, agent string) (n int, r *Reached) {
	t.Helper()
	v := &vendor{}
	for n = range 100 {
		if err := ask(Wrap(v, w.Ledger), agent); err != nil {
			if !errors.As(err, &r) {
				t.Fatal(err)
			}
			return n, r
		}
	}
	t.Fatal("no limit refuses")
	return
}

// Every kind of limit can be raised once: by its own amount, durably, and no more often
// than the user said so.
func TestALimitRaisedOnce(t *testing.T) {
	for name, set := range map[string]func(*world){
		"in all":       func(w *world) { w.limits.Total.USD = 0.44 },
		"a day":        func(w *world) { w.limits.PerDay.Tokens = 440 },
		"an agent":     func(w *world) { w.limits.PerAgent.USD = 0.44 },
		"its own":      func(w *world) { w.own["child"] = Amount{Tokens: 440} },
		"its parent's": func(w *world) { w.own["parent"] = Amount{USD: 0.44} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.line["child"] = []string{"parent"}
			set(w)
			if n, _ := spend(t, w, "child"); n != 2 {
				t.Fatalf("%d requests were allowed, want 2", n)
			}
			_, r := spend(t, w, "child")
			b, ok := permission.BudgetOf(r.Request().Tag)
			if !ok && len(r.Budget.Scope) < 24 {
				b = r.Budget // the ids of the test are no ids
			}
			for range 2 { // a second time is after a crash
				if err := w.Raise("child", b, "token1", "ada"); err != nil {
					t.Fatal(err)
				}
			}
			w.open()
			if !w.Freed("child", b) {
				t.Error("it is not free after it was raised")
			}
			n, again := spend(t, w, "child")
			if n != 3 { // 0.88 in all
				t.Errorf("%d more requests were allowed, want 3", n)
			}
			if again.Budget.Limit != 2*b.Limit || again.Budget.More != b.More {
				t.Errorf("asked is %+v after %+v", again.Budget, b)
			}
		})
	}
}

// The answer makes room for the request that was refused, however small the limit is.
func TestARaiseIsEnoughForTheNextRequest(t *testing.T) {
	w := newWorld(t)
	w.limits.Total.Tokens = 7
	_, r := spend(t, w, "a")
	if err := w.Raise("a", r.Budget, "t", "ada"); err != nil {
		t.Fatal(err)
	}
	if n, _ := spend(t, w, "a"); n != 1 {
		t.Errorf("%d requests were allowed after a raise by %v, want 1", n, r.Budget.More)
	}
}

// What was raised for one day is over with it.
func TestADaysRaiseEndsWithTheDay(t *testing.T) {
	w := newWorld(t)
	w.limits.PerDay.Tokens = 300
	_, r := spend(t, w, "a")
	if err := w.Raise("a", r.Budget, "t", "ada"); err != nil {
		t.Fatal(err)
	}
	if n, _ := spend(t, w, "a"); n != 2 {
		t.Errorf("%d requests were allowed after the raise, want 2", n)
	}
	_, r = spend(t, w, "a")
	w.now = w.now.Add(24 * time.Hour)
	if !w.Freed("a", r.Budget) {
		t.Error("the next day is not free")
	}
	if n, _ := spend(t, w, "a"); n != 2 {
		t.Errorf("%d requests were allowed on the next day, want 2", n)
	}
}

// A raise is for the limit as it is written: who writes another one means that.
func TestALimitThatIsWrittenAnewIsMeant(t *testing.T) {
	w := newWorld(t)
	w.limits.Total.Tokens = 300
	_, r := spend(t, w, "a")
	if err := w.Raise("a", r.Budget, "t", "ada"); err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int64]bool{300: true, 301: true, 450: true, 299: false, 0: true} {
		w.limits.Total.Tokens = limit
		if got := w.Freed("a", r.Budget); got != want {
			t.Errorf("with a limit of %d it is free: %v, want %v", limit, got, want)
		}
	}
	w.limits.Total.Tokens = 450
	if n, _ := spend(t, w, "a"); n != 1 {
		t.Errorf("%d requests were allowed under the new limit, want 1", n)
	}
}

// A file that cannot be read keeps nothing from starting, and raises nothing.
func TestBrokenRaises(t *testing.T) {
	for _, text := range []string{"", "{", "\x00\x00",
		`{"raises":[{"scope":"total","unit":"tokens","amount":1e300,"of":0}]}`,
		`{"raises":[{"scope":"total","unit":"x","amount":9,"of":300}]}`} {
		w := newWorld(t)
		w.limits.Total.Tokens = 300
		if err := os.MkdirAll(w.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(w.dir, raisesFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		w.open()
		if n, _ := spend(t, w, "a"); n != 2 {
			t.Errorf("with %q %d requests were allowed, want 2", text, n)
		}
		if strings.HasPrefix(text, "{\"") == strings.Contains(w.said.String(), raisesFile) {
			t.Errorf("with %q the log says %q", text, w.said.String())
		}
	}
}

// What a crash left of a raise that was being written goes at the next start, and raises of
// days that are over are not kept.
func TestWhatIsOverOfRaisesGoes(t *testing.T) {
	w := newWorld(t)
	w.limits.PerDay.Tokens = 300
	_, r := spend(t, w, "a")
	if err := w.Raise("a", r.Budget, "t1", "ada"); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(w.dir, ".tmp-"+raisesFile+"-123")
	if err := os.WriteFile(left, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(24 * time.Hour)
	w.open()
	if _, err := os.Lstat(left); err == nil {
		t.Errorf("%s is still there", left)
	}
	_, r = spend(t, w, "a")
	if err := w.Raise("a", r.Budget, "t2", "ada"); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(w.dir, raisesFile))
	if err != nil || strings.Contains(string(data), `"t1"`) || !strings.Contains(string(data), `"t2"`) {
		t.Errorf("%v: %s", err, data)
	}
}

// A raise never replaces what it does not know: a file that cannot be parsed is kept beside
// the new one, and what a user wrote into it since the start stays in it.
func TestARaiseKeepsWhatStoodInTheFile(t *testing.T) {
	const broken = `{"raises": [{"token": "old", "amount": 5,` // as an editor saved it too soon
	const edited = `{"raises": [{"at": "2026-01-02T03:04:05Z", "token": "by-hand", "scope": "total", "unit": "tokens",
		"amount": 5, "of": 7}]}`
	for name, tt := range map[string]struct {
		content string
		tokens  []string
		kept    int
	}{
		"broken": {broken, []string{"t"}, 1},
		"edited": {edited, []string{"by-hand", "t"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.limits.Total.Tokens = 7
			_, r := spend(t, w, "a")
			path := filepath.Join(w.dir, raisesFile)
			if err := errors.Join(os.MkdirAll(w.dir, 0o700), os.WriteFile(path, []byte(tt.content), 0o600)); err != nil {
				t.Fatal(err)
			}
			if err := w.Raise("a", r.Budget, "t", "ada"); err != nil {
				t.Fatal(err)
			}
			list, _, err := Options{Dir: w.dir}.readRaises()
			var tokens []string
			for _, r := range list {
				tokens = append(tokens, r.Token)
			}
			if err != nil || !slices.Equal(tokens, tt.tokens) {
				t.Errorf("the file has the raises %q (%v), want %q", tokens, err, tt.tokens)
			}
			entries, err := os.ReadDir(w.dir)
			if err != nil {
				t.Fatal(err)
			}
			kept := 0
			for _, e := range entries {
				if !strings.HasPrefix(e.Name(), raisesFile+".conflict-") {
					continue
				}
				kept++
				if content, err := os.ReadFile(filepath.Join(w.dir, e.Name())); err != nil || string(content) != broken {
					t.Errorf("kept is %q (%v)", content, err)
				}
			}
			if kept != tt.kept {
				t.Errorf("%d files are kept, want %d", kept, tt.kept)
			}
		})
	}
}

// A file that cannot be read is not replaced: the raise fails and is tried again.
func TestARaiseDoesNotReplaceAFileThatCannotBeRead(t *testing.T) {
	for name, put := range map[string]func(path string) error{ // reading fails for root, too
		"a folder":            func(path string) error { return os.MkdirAll(filepath.Join(path, "inside"), 0o700) },
		"a link to itself":    func(path string) error { return os.Symlink(filepath.Base(path), path) },
		"a link through none": func(path string) error { return os.Symlink(filepath.Base(path)+"/x", path) },
	} {
		w := newWorld(t)
		w.limits.Total.Tokens = 7
		_, r := spend(t, w, "a")
		path := filepath.Join(w.dir, raisesFile)
		if err := errors.Join(os.MkdirAll(w.dir, 0o700), put(path)); err != nil {
			t.Fatal(err)
		}
		before, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		var of *fs.PathError
		if err := w.Raise("a", r.Budget, "t", "ada"); !errors.As(err, &of) || !strings.HasPrefix(err.Error(), "raise budget: ") {
			t.Errorf("%s: the raise ends with %v", name, err)
		}
		if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
			t.Errorf("%s was replaced, %v", name, err)
		}
		if w.Freed("a", r.Budget) {
			t.Errorf("%s: the limit is raised although that is not written down", name)
		}
	}
}

// A raise lifts the one limit that it was given for: not that of another agent, nor another
// limit of the same amount.
func TestARaiseLiftsOneLimit(t *testing.T) {
	w := newWorld(t)
	w.limits.PerAgent.Tokens = 300
	_, r := spend(t, w, "a")
	if err := w.Raise("a", r.Budget, "t", "ada"); err != nil {
		t.Fatal(err)
	}
	if n, _ := spend(t, w, "a"); n != 2 {
		t.Errorf("%d more requests of the agent were allowed, want 2", n)
	}
	if n, _ := spend(t, w, "b"); n != 2 {
		t.Errorf("%d requests of another agent were allowed, want 2", n)
	}
	w = newWorld(t)
	w.limits.PerDay.Tokens, w.limits.Total.Tokens = 300, 300
	_, r = spend(t, w, "a")
	b := r.Budget
	b.Scope, b.Day = permission.BudgetPerDay, w.now.Format(time.DateOnly)
	if err := w.Raise("a", b, "t", "ada"); err != nil {
		t.Fatal(err)
	}
	if n, r := spend(t, w, "a"); n != 0 || r.Budget.Scope != permission.BudgetTotal {
		t.Errorf("%d requests were allowed, then %v, want the limit of all", n, r)
	}
}

// A raise that no file can hold fails, and those that were given stay.
func TestARaiseThatCannotBeWrittenKeepsTheOthers(t *testing.T) {
	w := newWorld(t)
	w.limits.Total.Tokens = 7
	_, r := spend(t, w, "a")
	if err := w.Raise("a", r.Budget, "t", "ada"); err != nil {
		t.Fatal(err)
	}
	r.Budget.More = math.Inf(1)
	if err := w.Raise("a", r.Budget, "t2", "ada"); err == nil {
		t.Error("it is said to be done")
	}
	list, _, err := w.o.readRaises()
	if err != nil || len(list) != 1 || list[0].Token != "t" {
		t.Errorf("the file has %+v, %v, want the first raise", list, err)
	}
}

// Of several limits the one that was reached is raised and looked at, not the first; one that
// cannot be known is neither.
func TestRaiseOfOneOfSeveralLimits(t *testing.T) {
	w := newWorld(t)
	w.limits.Total.Tokens, w.limits.PerAgent.Tokens = 100_000, 300
	_, r := spend(t, w, "a")
	if r.Budget.Scope != permission.BudgetPerAgent || w.Freed("a", r.Budget) {
		t.Fatalf("reached is %+v, and it is free: %v", r.Budget, w.Freed("a", r.Budget))
	}
	w.broken = map[string]error{"a": errors.New("state.json: unexpected end")}
	if err := w.Raise("a", r.Budget, "t", "ada"); err == nil || w.Freed("a", r.Budget) {
		t.Errorf("raised without knowing the limits: %v", err)
	}
	w.broken = nil
	if err := w.Raise("a", r.Budget, "t", "ada"); err != nil || !w.Freed("a", r.Budget) {
		t.Errorf("after it was raised: %v", err)
	}
}

// A raise is durable before it is said to be done: each step that fails is reported, and the
// limit is what it was.
func TestARaiseThatIsNotDurableIsNone(t *testing.T) {
	crashtest.EachStepFails(t, "eio", func(t *testing.T) func() error {
		w := newWorld(t)
		w.limits.Total.Tokens = 300
		_, r := spend(t, w, "a")
		return func() error {
			err := w.Raise("a", r.Budget, "t", "ada")
			if err != nil && w.Freed("a", r.Budget) {
				t.Errorf("the limit is raised after %v", err)
			}
			return err
		}
	})

	w := newWorld(t)
	w.limits.Total.USD = 0.3
	_, r := spend(t, w, "a")
	r.Budget.More = math.Inf(1) // JSON has no such number
	if err := w.Raise("a", r.Budget, "t", "ada"); err == nil || w.Freed("a", r.Budget) {
		t.Errorf("raised by an amount that cannot be written: %v", err)
	}
}

// A file that cannot be parsed and cannot be kept either is not replaced.
func TestABrokenFileOfRaisesIsNotLost(t *testing.T) {
	w := newWorld(t)
	w.limits.Total.Tokens = 7
	_, r := spend(t, w, "a")
	path := filepath.Join(w.dir, raisesFile)
	kept := path + ".conflict-" + w.now.Format("20060102T150405.000Z")
	if err := errors.Join(os.MkdirAll(filepath.Join(kept, "in the way"), 0o700), os.WriteFile(path, []byte("{"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := w.Raise("a", r.Budget, "t", "ada"); err == nil || !strings.Contains(err.Error(), "set the unreadable file aside") {
		t.Errorf("raised: %v", err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "{" {
		t.Errorf("the file has %q, %v", data, err)
	}
}

// A limit that an agent does not have any more is free, and raising it does nothing.
func TestALimitThatIsGoneIsFree(t *testing.T) {
	w := newWorld(t)
	w.own["parent"], w.line["child"] = Amount{Tokens: 300}, []string{"parent"}
	_, r := spend(t, w, "child")
	if w.Freed("child", r.Budget) {
		t.Fatalf("%+v is free", r.Budget)
	}
	delete(w.line, "child")
	if !w.Freed("child", r.Budget) {
		t.Error("it is not free")
	}
	if err := w.Raise("child", r.Budget, "t", "ada"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(w.dir, raisesFile)); err == nil {
		t.Error("a raise was written")
	}
}
