package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"daycare/engine/event"
	"daycare/engine/message"
)

// A drawer keeps files in memory.
type drawer struct {
	mu   sync.Mutex
	data map[string][]byte
}

func (d *drawer) Load(connector, name string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if data, ok := d.data[connector+"/"+name]; ok {
		return data, nil
	}
	return nil, fs.ErrNotExist
}

func (d *drawer) Save(connector, name string, data []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.data == nil {
		d.data = map[string][]byte{}
	}
	d.data[connector+"/"+name] = data
	return nil
}

// listed are the notifications of a task.
func listed(t *testing.T, p *pushes, task string) []*sdk.PushConfig {
	t.Helper()
	list, err := p.list(task)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Notifications go to the Internet over https, and into the owner's network only where the
// settings say so.
func TestWhereNotificationsGo(t *testing.T) {
	notify := []string{"127.0.0.1:9000", "nas.home:8443"}
	for address, want := range map[string]string{
		"https://example.org/x": "", "https://nas.home:8443/x": "", "http://127.0.0.1:9000/x": "",
		"": "not an https", "https://": "not an https", "https://" + strings.Repeat("x", maxURL): "not an https",
		"http://example.org/x":        "not https://",
		"ftp://example.org/x":         "not https://",
		"https://ada:secret@x.org/":   "user name",
		"https://127.0.0.1:9001/":     "network of this agent",
		"https://10.0.0.1/":           "network of this agent",
		"https://[::1]/":              "network of this agent",
		"https://169.254.169.254/":    "network of this agent",
		"http://169.254.169.254/meta": "not https://",
	} {
		err := checkPush(notify, &sdk.PushConfig{URL: address})
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%.60s: %v, want %q", address, err, want)
		}
	}
}

// Where a name leads is decided when it is dialled.
func TestANameThatLeadsInside(t *testing.T) {
	reached := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached++
		http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
	}))
	defer s.Close()
	u, _ := url.Parse(s.URL)
	inside := "http://localhost:" + u.Port() + "/"

	var not *message.NotSent
	err := newConnector(t).notify(t.Context(), sdk.PushConfig{URL: inside}, "k", nil)
	if !errors.As(err, &not) || !not.Final || !errors.Is(err, errInside) || reached != 0 {
		t.Errorf("%v, reached %d times", err, reached)
	}
	err = newConnector(t, "localhost:"+u.Port()).notify(t.Context(), sdk.PushConfig{URL: inside}, "k", nil)
	if !errors.As(err, &not) || !not.Final || reached != 1 {
		t.Errorf("a redirect: %v, reached %d times", err, reached)
	}
}

// What clients want to be notified of is kept over a restart, within limits.
func TestNotificationsAreKept(t *testing.T) {
	d := &drawer{}
	p := pushes{connector: "a2a", keep: d}
	save := func(task, address string) (*sdk.PushConfig, error) {
		return p.save(nil, someone, task, "c", &sdk.PushConfig{URL: address})
	}
	first, err := save("t", "https://example.org/1")
	again, err2 := save("t", "https://example.org/1")
	if err != nil || err2 != nil || first.ID == "" || first.TaskID != "t" || again.URL != first.URL {
		t.Fatalf("%+v, %v, %+v, %v", first, err, again, err2)
	}
	p = pushes{connector: "a2a", keep: d} // another process
	if list := listed(t, &p, "t"); len(list) != 1 || list[0].URL != "https://example.org/1" {
		t.Errorf("%+v", list)
	}
	for n := range maxConfigs {
		_, err = save("t", fmt.Sprint("https://example.org/more", n))
	}
	if list := listed(t, &p, "t"); err == nil || len(list) != maxConfigs {
		t.Errorf("%d notifications, %v", len(list), err)
	}
	if err := p.forget("t", listed(t, &p, "t")[0].ID); err != nil || len(listed(t, &p, "t")) != maxConfigs-1 {
		t.Errorf("%d notifications, %v", len(listed(t, &p, "t")), err)
	}
	if p.remove("t"); len(listed(t, &p, "t")) != 0 {
		t.Errorf("%+v", listed(t, &p, "t"))
	}

	long := watched{At: time.Now().Add(-pushAge - time.Hour), Configs: []sdk.PushConfig{{URL: "https://x"}}}
	old, _ := json.Marshal(map[string]watched{"old": long}) // of texts
	_ = d.Save("a2a", pushFile, old)
	if _, err := save("new", "https://example.org/"); err != nil || len(listed(t, &p, "old")) != 0 {
		t.Errorf("%+v, %v", listed(t, &p, "old"), err)
	}
	_ = d.Save("a2a", pushFile, []byte("{"))
	if _, err := save("new", "https://example.org/"); err == nil || !strings.Contains(err.Error(), pushFile) {
		t.Errorf("a broken file: %v", err)
	}
}

// items are items that an engine would have.
type items map[string]event.Posted

func (i items) Item(_ context.Context, _, item string) (event.Posted, error) {
	p, ok := i[item]
	if !ok {
		return p, errors.New("no such item")
	}
	return p, nil
}

// A notification has the task as it is, with the same key each time, and says by its error
// whether to try again.
func TestNotifications(t *testing.T) {
	type told struct {
		header http.Header
		body   sdk.StreamResponse
	}
	var got []told
	status := http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one := told{header: r.Header}
		if err := json.NewDecoder(r.Body).Decode(&one.body); err != nil {
			t.Error(err)
		}
		got = append(got, one)
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(status)
	}))
	defer s.Close()
	u, _ := url.Parse(s.URL)
	c := newConnector(t, u.Host)
	c.items = items{"t": {Item: "t", State: "done", Route: &event.Route{ChannelID: "c"},
		Outcome: &event.Outcome{Reason: "error", Text: "it broke"}}}
	watch := func() {
		t.Helper()
		_, err := c.pushes.save(c.o.Notify, someone, "t", "c", &sdk.PushConfig{URL: s.URL, Token: "mine",
			Auth: &sdk.PushAuthInfo{Scheme: "Bearer", Credentials: "theirs"}})
		if err != nil {
			t.Fatal(err)
		}
	}
	to := message.Address{Connector: "a2a", ChannelID: "c", UserID: "token:x", ThreadID: "t"}
	out := message.Outgoing{ID: "o1", To: to, Text: "it broke"}
	if c.Answers(to) {
		t.Error("an answer is promised to nobody")
	}
	if watch(); !c.Answers(to) {
		t.Error("no answer is promised")
	}

	for _, tt := range []struct {
		status int
		final  bool
		after  time.Duration
	}{{500, false, 0}, {503, false, 7 * time.Second}, {404, true, 0}} {
		status = tt.status
		_, err := c.Send(t.Context(), out)
		var not *message.NotSent
		isNot := errors.As(err, &not)
		if err == nil || isNot != (tt.final || tt.after > 0) || strings.Contains(err.Error(), s.URL) ||
			isNot && (not.Final != tt.final || not.After != tt.after) {
			t.Errorf("%d: %v", tt.status, err)
		}
	}
	status, got = http.StatusAccepted, nil
	if _, err := c.Send(t.Context(), out); err != nil || len(got) != 1 {
		t.Fatalf("%v, %d notifications", err, len(got))
	}
	task, h := got[0].body.Event.(*sdk.Task), got[0].header
	if task.ID != "t" || task.ContextID != "c" || task.Status.State != sdk.TaskStateFailed || h.Get("Idempotency-Key") != "o1" ||
		h.Get("X-A2A-Notification-Token") != "mine" || h.Get("Authorization") != "Bearer theirs" {
		t.Errorf("%+v, %v", task, h)
	}
	if c.Answers(to) {
		t.Error("the task has ended, and its notifications are kept")
	}

	// The turn after an approval says something else than the first one.
	watch()
	got = nil
	if _, err := c.Send(t.Context(), message.Outgoing{ID: "o2", To: to, Text: "done after all"}); err != nil || len(got) != 1 {
		t.Fatalf("%v, %d notifications", err, len(got))
	}
	task = got[0].body.Event.(*sdk.Task)
	if task.Status.State != sdk.TaskStateCompleted || task.Artifacts[0].Parts[0].Text() != "done after all" {
		t.Errorf("%+v", task)
	}
}

// What cannot be read now, for lack of descriptors, is promised, and tried again.
func TestNotificationsThatCannotBeReadNow(t *testing.T) {
	c := newConnector(t)
	c.pushes.keep = starved{}
	to := message.Address{Connector: "a2a", ChannelID: "c", UserID: "token:x", ThreadID: "t"}
	if !c.Answers(to) {
		t.Error("no answer is promised")
	}
	var not *message.NotSent
	if _, err := c.Send(t.Context(), message.Outgoing{ID: "o", To: to, Text: "x"}); !errors.Is(err, syscall.EMFILE) || errors.As(err,
		&not) {
		t.Errorf("%v: it is given up", err)
	}
	if list, err := c.pushes.list("t"); err == nil {
		t.Errorf("%v, and no error", list)
	}
	if err := c.pushes.forget("t", "x"); !errors.Is(err, syscall.EMFILE) {
		t.Error(err)
	}
}

type starved struct{}

func (starved) Load(string, string) ([]byte, error) { return nil, syscall.EMFILE }
func (starved) Save(string, string, []byte) error   { return syscall.EMFILE }
