package platforms

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func begin(t *testing.T, name string) Platform {
	t.Helper()
	p, err := New(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// ask calls a platform as its bot; 0: the connection was lost.
func ask(t *testing.T, method, address, body string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close()
	data, _ := io.ReadAll(resp.Body) // one that is torn is short
	return resp.StatusCode, string(data)
}

// A platform that there is not is an error that names those that there are.
func TestThereAreThree(t *testing.T) {
	for _, name := range Names {
		if p := begin(t, name); p.Name() != name || len(p.Said()) != 0 || !strings.Contains(p.Settings("127.0.0.1:1"), "type: "+name) {
			t.Errorf("%s is %q, with %q", name, p.Name(), p.Settings("127.0.0.1:1"))
		}
	}
	if _, err := New("fax"); err == nil || !strings.Contains(err.Error(), Matrix) {
		t.Errorf("a fax: %v", err)
	}
}

// Matrix takes a message once under its key, whatever becomes of its answer; what the user writes is
// confirmed when it is asked for what is behind it.
func TestMatrix(t *testing.T) {
	p := begin(t, Matrix)
	base := p.(*homeserver).base + matrixAPI
	for n, want := range []int{200, 0, 200} { // the second answer is lost
		status, _ := ask(t, http.MethodPut, base+"/rooms/r/send/m.room.message/k", `{"body":"hi","daycare.key":"k"}`)
		if status != want {
			t.Errorf("try %d: %d, want %d", n, status, want)
		}
	}
	if got := p.Said(); len(got) != 1 || got[0].Text != "hi" {
		t.Errorf("said %+v, want the message once", got)
	}
	var confirmed atomic.Bool
	written := make(chan struct{})
	go func() { p.Write("hello", func() { confirmed.Store(true) }); close(written) }()
	if _, all := ask(t, http.MethodGet, base+"/sync?since=1", ""); !strings.Contains(all, "hello") || confirmed.Load() {
		t.Errorf("asked from the first place it says %q, confirmed: %v", all, confirmed.Load())
	}
	<-written
	p.Write("more", func() {})
	ask(t, http.MethodGet, base+"/sync?since=2", "") // torn: it fails now and then
	for end := time.Now().Add(30 * time.Second); !confirmed.Load(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the message is not confirmed by who asked for what is behind it")
		}
	}
}

// Meta posts until it is answered with 200, signed, and a part of it once more.
func TestWhatsApp(t *testing.T) {
	p := begin(t, WhatsApp)
	var posts atomic.Int64
	daycare := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := posts.Add(1); n <= 2 || !strings.HasPrefix(r.Header.Get("X-Hub-Signature-256"), "sha256=") {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer daycare.Close()
	p.Settings(strings.TrimPrefix(daycare.URL, "http://"))
	received := make(chan struct{}, 3)
	for range 3 {
		p.Write("hello", func() { received <- struct{}{} })
	}
	for range 3 {
		select {
		case <-received:
		case <-time.After(30 * time.Second):
			t.Fatal("a message is not confirmed")
		}
	}
	for end := time.Now().Add(30 * time.Second); posts.Load() < 6; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d posts, want two refused, three accepted, and one of those once more", posts.Load())
		}
	}

	at := p.(*graph).base + "/" + whatsappNumber + "/messages"
	message := `{"type":"text","text":{"body":"hi"},"biz_opaque_callback_data":"k"}`
	for n, want := range []int{200, 0, 200, 400, 200, 502} {
		if status, _ := ask(t, http.MethodPost, at, message); status != want {
			t.Errorf("answer %d: %d, want %d", n+1, status, want)
		}
	}
	if got := len(p.Said()); got != 4 {
		t.Errorf("%d messages are shown, want all but the two that were refused", got)
	}
}
