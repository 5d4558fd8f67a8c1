package bench

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"daycare/engine/lazyregexp"

	"github.com/google/go-cmp/cmp"
)

// A sender who is told to come again later does so; what is refused for another
// reason ends the flood.
func TestPourHeedsRetryAfter(t *testing.T) {
	tries := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if tries++; tries == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		if tries == 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	client := &http.Client{Transport: rewrite{server.URL}}
	var p poured
	p.send(t.Context(), client, map[string]string{"text": "a"})
	if p.accepted.Load() != 1 || p.refused.Load() != 1 || p.unsaid.Load() != 0 || p.err() != nil ||
		!strings.Contains(p.said(), "Retry-After: 1") {
		t.Errorf("accepted %d, refused %d, %q, %v", p.accepted.Load(), p.refused.Load(), p.said(), p.err())
	}

	p.send(t.Context(), client, map[string]string{"text": "b"})
	if p.err() == nil || !strings.Contains(p.err().Error(), "503") {
		t.Errorf("a message that was refused for good: %v", p.err())
	}
}

// rewrite sends everything to one server.
type rewrite struct{ to string }

func (r rewrite) RoundTrip(req *http.Request) (*http.Response, error) {
	req.URL.Host = strings.TrimPrefix(r.to, "http://")
	return http.DefaultTransport.RoundTrip(req)
}

// Messages are found in all files of a history, and only those of users.
func TestCountFindsEveryMessage(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"agents/a/history.jsonl": `{"type":"user_message","text":"ma1-0 and ma1-1"}` + "\n" +
			`{"type":"assistant_message","text":"ma9-9"}` + "\n",
		"agents/a/history/000001.jsonl": `{"type":"user_message","text":"ma1-0"}` + "\n",
		"agents/a/inbox.jsonl":          `{"type":"user_message","text":"ma2-0"}` + "\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	got, err := (&child{root: root}).count(lazyregexp.New(`\bma\d+-\d+\b`))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]int{"ma1-0": 2, "ma1-1": 1}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestLeaks(t *testing.T) {
	before := Usage{FDs: 10, Goroutines: 20}
	for u, want := range map[Usage]bool{before: false, {FDs: 10 + slack, Goroutines: 20 + slack}: false,
		{FDs: 11 + slack, Goroutines: 20}: true, {FDs: 1, Goroutines: 21 + slack}: true} {
		if u.leaks(before) != want {
			t.Errorf("%+v leaks: %v, want %v", u, !want, want)
		}
	}
}

func TestCurvesOfASoak(t *testing.T) {
	w := &soaking{child: &child{}, seen: make([]int, 2)}
	_, curves := w.rows(1, Usage{}, []sample{{1e9, Usage{RSS: 1 << 20, FDs: 3}}, {2e9, Usage{RSS: 2 << 20, FDs: 4}},
		{3e9, Usage{RSS: 2 << 20, FDs: 4}}})
	var b bytes.Buffer
	want := "figure,by,x,y\n\"resident, MiB\",seconds,1,1\n\"resident, MiB\",seconds,2,2\n\"resident, MiB\",seconds,3,2\n" +
		"descriptors,seconds,1,3\ndescriptors,seconds,2,4\ndescriptors,seconds,3,4\n"
	if err := WriteCSV(&b, curves...); err != nil || b.String() != want {
		t.Errorf("%v\n%s", err, b.String())
	}
}
