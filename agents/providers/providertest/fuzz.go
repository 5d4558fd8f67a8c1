package providertest

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// roundTripper answers every request with the same bytes, without a network.
type roundTripper struct{ kind, body string }

func (r roundTripper) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     http.Header{"Content-Type": {r.kind}},
		Body:       io.NopCloser(strings.NewReader(r.body)),
	}, nil
}

// Fuzz feeds any bytes as an answer: the stream never panics and always ends in
// exactly one Complete or Error. Run it with -fuzzminimizetime 10x: connections
// have goroutines, so coverage varies, and the default minimises forever.
func Fuzz(f *testing.F, provider New) {
	files, _ := filepath.Glob(filepath.Join("testdata", "transcripts", "*.sse"))
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}

	f.Fuzz(func(t *testing.T, body string) {
		for _, kind := range []string{"text/event-stream", "application/json"} {
			c := &http.Client{Transport: roundTripper{kind, body}}
			Collect(t, t.Context(), provider(t, "http://service.test", c), Hello())
		}
	})
}
