package budget

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"daycare/agents/providers"
)

func TestReachedSaysEachLimit(t *testing.T) {
	spent := Amount{0.25, 70}
	for want, limit := range map[string]Amount{
		"the budget x is used up: $0.2500 of $0.3000":                  {USD: 0.3},
		"the budget x is used up: 70 of 75 tokens":                     {Tokens: 75},
		"the budget x is used up: $0.2500 of $9.0000, 70 of 75 tokens": {USD: 9, Tokens: 75},
	} {
		if got := (&Reached{Setting: "x", Spent: spent, Limit: limit}).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	r := &Reached{Setting: "x", Spent: spent, Limit: Amount{USD: 0.3, Tokens: 75}, Next: Amount{USD: 0.1, Tokens: 9}}
	if got, want := r.Error(), " (the next request may take $0.1000, 9 tokens)"; !strings.HasSuffix(got, want) {
		t.Errorf("%q, want %q at its end", got, want)
	}
}

// What has come of a stream that broke is paid for, whatever it was.
func TestEveryKindOfAnswerIsCounted(t *testing.T) {
	for _, ev := range []providers.Event{providers.ContentDelta{Text: "äöüß1234"},
		providers.ThinkingDelta{Text: "12345678"}, providers.ToolUseDelta{Arguments: "12345678"}} {
		w := newWorld(t)
		m := meter{bounded: &bounded{&vendor{}, w.Ledger}, req: &providers.Request{Agent: "a"},
			reserved: &reservation{family: []string{"a"}}}
		m.see(ev)
		m.see(ev)
		m.close()
		if got := w.Spent("a").Tokens; got != 4 {
			t.Errorf("%T: 16 characters count %d tokens, want 4", ev, got)
		}
	}
}

// Each kind of token is money spent, when it is reserved, settled and read again.
func TestEachKindOfTokenIsAddedUp(t *testing.T) {
	u := providers.Usage{Input: 1000, Output: 200, CacheRead: 30, CacheWrite: 4}
	w := newWorld(t)
	w.line["child"] = []string{"parent"}
	w.Spend("child", "v", "m", u)
	for range 2 {
		for _, agent := range []string{"child", "parent"} {
			if got := w.Spent(agent); !near(got, Amount{1.2, 1234}) {
				t.Errorf("%s spent %v, want 1234 tokens", agent, got)
			}
		}
		w.open()
	}
	if got := (&bounded{&vendor{}, w.Ledger}).amount("m", u); !near(got, Amount{1.2, 1234}) {
		t.Errorf("reserved are %v, want 1234 tokens", got)
	}
}

// A request that ends after midnight is charged to the day on which it ends.
func TestARequestOverMidnight(t *testing.T) {
	w := newWorld(t)
	r, err := w.reserve("a", Amount{1, 1000})
	if err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(13 * time.Hour)
	w.settle(r, "v", "m", providers.Usage{Input: 100, Output: 50})
	if days := w.spent.Days; days["2026-11-20"].Tokens != 0 || days["2026-11-21"].Tokens != 150 {
		t.Errorf("charged are %v", days)
	}
}

// A ledger of a workspace in which nothing was spent writes nothing; with the first line
// it keeps its calendar.
func TestFirstLine(t *testing.T) {
	w := newWorld(t)
	if _, err := os.Stat(w.dir); !errors.Is(err, fs.ErrNotExist) || w.said.String() != "" {
		t.Errorf("to open a ledger made the folder (%v) and said %q", err, &w.said)
	}
	w.Spend("a", "v", "m", providers.Usage{Input: 1})
	if c := w.o.load().Calendar; c.Day != "2026-11-20" || len(c.Past) != 0 {
		t.Errorf("the calendar kept is %+v, want today and no day before it", c)
	}
	w.Spend("a", "v", "m", providers.Usage{Input: 1})
	data, err := os.ReadFile(filepath.Join(w.dir, "2026-11-20.jsonl"))
	if err != nil || len(bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))) != 2 || data[0] != '{' ||
		bytes.Contains(data, []byte("\n\n")) {
		t.Errorf("the file has %q, %v, want two lines", data, err)
	}
	if w.open(); w.said.String() != "" {
		t.Errorf("of good files is said: %s", &w.said)
	}
}

// The budget continues in memory where a line cannot be written, and says why.
func TestLinesThatCannotBeWritten(t *testing.T) {
	const day = "2026-11-20.jsonl"
	for name, tt := range map[string]struct {
		spoil func(dir string) error
		cost  float64
		want  error
	}{
		"a file for the folder": {func(dir string) error { os.Remove(dir); return os.WriteFile(dir, nil, 0o600) }, 1, syscall.ENOTDIR},
		"a folder for the file": {func(dir string) error { return os.Mkdir(filepath.Join(dir, day), 0o700) }, 1, syscall.EISDIR},
		"a full disk":           {func(dir string) error { return os.Symlink("/dev/full", filepath.Join(dir, day)) }, 1, syscall.ENOSPC},
		"no number":             {func(string) error { return nil }, math.Inf(1), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat("/dev/full"); err != nil && name == "a full disk" {
				t.Skip("no /dev/full here")
			}
			w := newWorld(t)
			if err := errors.Join(os.MkdirAll(w.dir, 0o700), tt.spoil(w.dir)); err != nil {
				t.Fatal(err)
			}
			w.o.Price = func(string, string, providers.Usage) float64 { return tt.cost }
			w.Spend("a", "v", "m", providers.Usage{Input: 3})
			if err := w.Err(); err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if w.Spent("a").Tokens != 3 {
				t.Errorf("spent are %v", w.Spent("a"))
			}
			if err := Add(w.dir, []Call{{At: w.now, Agent: "a", Cost: tt.cost}}); err == nil {
				t.Error("Add says nothing")
			}
		})
	}
}

// A line counts if it is whole, names an agent, and is not longer than a line may be.
func TestWhichLinesCount(t *testing.T) {
	pad := func(n int) string {
		const a, z = `{"agent":"a","tokens":{"input":7},"provider":"`, `"}` + "\n"
		return a + strings.Repeat("x", n-len(a)-len(z)) + z
	}
	for name, tt := range map[string]struct {
		text string
		want int64
	}{
		"as long as it may be":   {pad(maxLine), 7},
		"one byte longer":        {pad(maxLine+1) + pad(100), 7},
		"much longer":            {pad(3*maxLine) + pad(100), 7},
		"no agent":               {`{"tokens":{"input":5}}` + "\n" + pad(100), 7},
		"something else in it":   {`{"agent":"a","tokens":{"input":5,"output":"x"}}` + "\n" + pad(100), 7},
		"no newline at the end":  {strings.TrimSuffix(pad(100), "\n"), 7},
		"an empty line, and two": {"\n" + pad(100) + pad(200), 14},
	} {
		w := newWorld(t)
		if err := errors.Join(os.MkdirAll(w.dir, 0o700),
			os.WriteFile(filepath.Join(w.dir, "2026-11-19.jsonl"), []byte(tt.text), 0o600)); err != nil {
			t.Fatal(err)
		}
		if w.open(); w.spent.Total.Tokens != tt.want {
			t.Errorf("%s: %d tokens were spent, want %d", name, w.spent.Total.Tokens, tt.want)
		}
	}
}

// A file that was added up is read again when its size or its time has changed, or it is
// gone, and only then.
func TestAddedUpFilesAreReadOnce(t *testing.T) {
	const one, other = `{"agent":"a","tokens":{"input":1}}` + "\n", `{"agent":"a","tokens":{"input":5}}` + "\n"
	at := time.Date(2026, 11, 19, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		change func(path string) error
		want   int64
	}{
		"as it was":     {func(path string) error { return save(path, other, at) }, 1},
		"another time":  {func(path string) error { return save(path, other, at.Add(time.Second)) }, 5},
		"another size":  {func(path string) error { return save(path, other+one, at) }, 6},
		"gone":          {os.Remove, 0},
		"a broken link": {func(path string) error { return errors.Join(os.Remove(path), os.Symlink("nothing", path)) }, 0},
	} {
		w := newWorld(t)
		path := filepath.Join(w.dir, "2026-11-18.jsonl")
		if err := errors.Join(os.MkdirAll(w.dir, 0o700), save(path, one, at)); err != nil {
			t.Fatal(err)
		}
		w.open()
		// A file that came meanwhile makes nobody read the others again.
		if err := errors.Join(tt.change(path),
			save(filepath.Join(w.dir, "2026-11-19.jsonl"), `{"agent":"b","tokens":{"input":100}}`, at)); err != nil {
			t.Fatal(err)
		}
		w.open()
		if got := w.spent.Total.Tokens; got != 100+tt.want {
			t.Errorf("%s: %d tokens were spent, want %d", name, got, 100+tt.want)
		}
	}
}

func save(path, text string, at time.Time) error {
	return errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, at, at))
}

// Sums that are not whole are made again, and it is said of those that are broken.
func TestSumsThatAreNotWhole(t *testing.T) {
	for sums, said := range map[string]bool{
		`{"files":{},"days":{}}`:   false,
		`{"files":{},"agents":{}}`: false,
		`{"days":{},"agents":{}}`:  false,
		`{"total":{"tokens":-9},"files":{},"agents":{"a":{"tokens":-9}},"days":{"2026-11-20":1}}`: true,
	} {
		w := newWorld(t)
		for _, day := range []string{"2026-11-19", "2026-11-20"} {
			if err := errors.Join(os.MkdirAll(w.dir, 0o700),
				save(filepath.Join(w.dir, day+".jsonl"), `{"agent":"a","tokens":{"input":1}}`, w.now)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(w.dir, sumsFile), []byte(sums), 0o600); err != nil {
			t.Fatal(err)
		}
		if w.open(); w.Spent("a").Tokens != 2 || w.spent.Total.Tokens != 2 {
			t.Errorf("%s: %v were spent, %v in all, want 2 tokens", sums, w.Spent("a"), w.spent.Total)
		}
		if got := strings.Contains(w.said.String(), "adding them up again"); got != said {
			t.Errorf("%s: said is %q", sums, &w.said)
		}
	}
	w := newWorld(t)
	if err := os.MkdirAll(filepath.Join(w.dir, sumsFile, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if w.open(); !strings.Contains(w.said.String(), "cannot save") {
		t.Errorf("sums that cannot be written: said is %q", &w.said)
	}
}

// Files with more than the histories have lack nothing; files that cannot be read are no
// reason to write everything again.
func TestMissingIsSure(t *testing.T) {
	dir := t.TempDir()
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	if err := Add(dir, []Call{{At: at, Agent: "a", Usage: providers.Usage{Input: 10, CacheRead: 10}},
		{At: at, Agent: "a", Usage: providers.Usage{Output: 10}}}); err != nil {
		t.Fatal(err)
	}
	calls := []Call{{At: at, Agent: "a", Usage: providers.Usage{Input: 15}}, {At: at, Agent: "a", Usage: providers.Usage{CacheWrite: 15}}}
	if missing, err := Missing(dir, calls); err != nil || len(missing) != 0 {
		t.Errorf("missing are %v, %v, although the files have as much", missing, err)
	}
	more := append(calls, Call{At: at, Agent: "a", Usage: providers.Usage{Input: 1}})
	if missing, err := Missing(dir, more); err != nil || len(missing) != 3 {
		t.Errorf("missing are %v, %v, although the files have less", missing, err)
	}
	if err := os.Symlink("loop.jsonl", filepath.Join(dir, "loop.jsonl")); err != nil {
		t.Fatal(err)
	}
	if missing, err := Missing(dir, more); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("with a file that cannot be opened: %v, %v", missing, err)
	}
	loop := filepath.Join(dir, "loop.jsonl")
	if missing, err := Missing(loop, more); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("of a folder that cannot be read: %v, %v", missing, err)
	}
	w := newWorld(t)
	w.dir = loop
	w.open()
	for _, want := range []string{"cannot list", "cannot clean up the usage files"} {
		if !strings.Contains(w.said.String(), want) {
			t.Errorf("of a folder that cannot be read is said %q, want %s", &w.said, want)
		}
	}
}

// What is written back stands in its file in the order in which it was spent.
func TestMissingCallsAreWrittenInTheirOrder(t *testing.T) {
	dir := t.TempDir()
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.Local)
	var calls []Call
	for _, minutes := range []int{7, 3, 9, 1} {
		calls = append(calls, Call{At: at.Add(time.Duration(minutes) * time.Minute), Agent: fmt.Sprint("a", minutes)})
	}
	if err := Add(dir, calls); err != nil {
		t.Fatal(err)
	}
	var agents []string
	if err := eachLine(filepath.Join(dir, Day(at)), func(l line) { agents = append(agents, l.Agent) }); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a1", "a3", "a7", "a9"}; !slices.Equal(agents, want) {
		t.Errorf("the file has %q, want %q", agents, want)
	}
}
