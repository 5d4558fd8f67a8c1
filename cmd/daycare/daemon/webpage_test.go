package daemon

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"daycare/engine/control"
)

// A tab is a browser that is logged in.
type tab struct {
	*testing.T
	address string // http://127.0.0.1:PORT/
	cookie  *http.Cookie
}

// ask makes a request as the page does, and reads the answer into v.
func (b *tab) ask(method, path, body string, v any) int {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), method, strings.TrimSuffix(b.address, "/")+path, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("X-Daycare", "1")
	if b.cookie != nil {
		req.AddCookie(b.cookie)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range resp.Cookies() {
		b.cookie = c
	}
	if v != nil && json.Unmarshal(data, v) != nil {
		b.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, data)
	}
	return resp.StatusCode
}

// opened is a tab with the page of a daemon.
func opened(t *testing.T, r *Daemon) *tab {
	t.Helper()
	page, err := r.client().OpenPage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, token, _ := strings.Cut(page.URL, "#token=")
	b := &tab{T: t, address: page.Address}
	if status := b.ask("POST", "/v1/session", fmt.Sprintf(`{"token":%q}`, token), nil); status != http.StatusOK || b.cookie == nil {
		t.Fatalf("login: %d", status)
	}
	return b
}

// What is typed in the page is a message like any other: durable, once, in order, with its files,
// of the connector web and no guest's.
func TestMessagesOfThePage(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, ".daycare", "settings.yaml"), "providers:\n- {id: s, type: scripted}\n")
	r := started(t, dir)
	b := opened(t, r)
	if status := b.ask("POST", "/v1/agents", `{"name":"Ann"}`, nil); status != http.StatusCreated {
		t.Fatalf("a new agent: %d", status)
	}
	const first = `{"text":"first","dedupe":"k1","files":[{"name":"shot.png","data":"iVBORw0KGgo="}]}`
	var receipts [3]struct {
		Item      string
		Duplicate bool
	}
	for i, body := range []string{first, first, `{"text":"second","dedupe":"k2"}`} {
		if status := b.ask("POST", "/v1/agents/Ann/messages", body, &receipts[i]); status != http.StatusAccepted {
			t.Fatalf("message %d: %d", i, status)
		}
	}
	if receipts[0].Duplicate || !receipts[1].Duplicate || receipts[1].Item != receipts[0].Item || receipts[2].Duplicate {
		t.Errorf("receipts %+v", receipts)
	}

	var page struct {
		Records []struct {
			Type, Text, Source, HTML string
			Files                    []struct{ Name string }
		}
	}
	said := func() (texts []string) {
		b.ask("GET", "/v1/agents/Ann/history?html=1", "", &page)
		for _, rec := range page.Records {
			if rec.Type != "user_message" {
				continue
			}
			texts = append(texts, rec.Text)
			if rec.Source != "" || rec.HTML != "<p>"+rec.Text+"</p>" {
				t.Errorf("the owner's message is one of %q, HTML %q", rec.Source, rec.HTML)
			}
			if rec.Text == "first" && (len(rec.Files) != 1 || rec.Files[0].Name != "shot.png") {
				t.Errorf("files %v", rec.Files)
			}
		}
		return texts
	}
	waitFor(t, "both messages in history", func() bool { return len(said()) == 2 })
	if got := strings.Join(said(), " "); got != "first second" {
		t.Errorf("history has %s", got)
	}
}

// A browser finds a new daemon at the same address, with the same cookie, though nobody asked this
// daemon for the page; and one without sessions serves nothing.
func TestThePageOutlivesTheDaemon(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, ".daycare", "settings.yaml"), "providers:\n- {id: s, type: scripted}\n")
	var b *tab
	t.Run("the first daemon", func(t *testing.T) {
		r := started(t, dir)
		if r.shown.door.On() || r.shown.address != "" {
			t.Error("the page is served though nobody asked for it")
		}
		b = opened(t, r)
	})
	b.T = t
	t.Run("the second", func(t *testing.T) {
		r := started(t, dir)
		var me control.Session
		if status := b.ask("GET", "/v1/session", "", &me); status != http.StatusOK || me.Name == "" {
			t.Errorf("who am I: %d %+v", status, me)
		}
		if err := r.client().EndSession(t.Context(), me.Name); err != nil {
			t.Error(err)
		}
		if status := b.ask("GET", "/v1/session", "", nil); status != http.StatusUnauthorized {
			t.Errorf("after the end of the session: %d", status)
		}
	})
	t.Run("the third", func(t *testing.T) {
		if r := started(t, dir); r.shown.door.On() || r.shown.address != "" {
			t.Error("the page is served for nobody")
		}
	})
}

// A port that another program has, perhaps the page of another workspace, is passed over, and the next start says so.
func TestAPortInUse(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, ".daycare", "settings.yaml"), "providers:\n- {id: s, type: scripted}\n")
	t.Run("logged in", func(t *testing.T) { opened(t, started(t, dir)) })
	addresses := addressesOf(dir)
	for _, addr := range addresses[:2] {
		l, err := control.ListenTCP(control.TCP{Addr: addr, Token: "x"})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	r := started(t, dir)
	want := "http://" + addresses[2]
	if len(r.notes) != 1 || !strings.Contains(r.notes[0], want) || !strings.Contains(r.notes[0], "web.listen") {
		t.Errorf("notes %q, want one with %s and web.listen", r.notes, want)
	}
	if b := opened(t, r); b.address != want+"/" {
		t.Errorf("daycare web prints %s, want %s", b.address, want)
	}
}

// An address of the settings that cannot be had is an error of daycare web, and no reason not to start.
func TestAnAddressInUse(t *testing.T) {
	dir := t.TempDir()
	settings := filepath.Join(dir, ".daycare", "settings.yaml")
	write(t, settings, "providers:\n- {id: s, type: scripted}\n")
	t.Run("logged in", func(t *testing.T) { opened(t, started(t, dir)) })
	l, err := control.ListenTCP(control.TCP{Addr: "127.0.0.1:0", Token: "x"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	write(t, settings, fmt.Sprintf("providers:\n- {id: s, type: scripted}\nweb: { listen: %q }\n", strings.TrimPrefix(l.URL, "http://")))
	r := started(t, dir)
	if len(r.notes) != 1 || !strings.Contains(r.notes[0], "web.listen") {
		t.Errorf("notes %q", r.notes)
	}
	if _, err := r.client().OpenPage(t.Context()); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("daycare web: %v", err)
	}
}
