package control

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"daycare/engine/apitoken"
	"daycare/engine/fault"
)

// A client learns the version of the daemon with each answer, and is told when it differs.
func TestVersionsAreCompared(t *testing.T) {
	for theirs, want := range map[string]string{"": "", "0.1.0": "", "0.0.9": "0.0.9", "0.2.0": "0.2.0"} {
		c := NewClient(Local(Handler((&fake{}).backend(), Options{Version: theirs})))
		got := ""
		c.Introduce("0.1.0", func(v string) { got = v })
		if _, err := c.Status(t.Context()); err != nil || got != want {
			t.Errorf("a daemon of version %q: reported %q, %v", theirs, got, err)
		}
	}
}

// An operation that a daemon of another version does not know is not a puzzle: the error says which
// version it has, and what to do.
func TestAnOperationThatTheOtherVersionDoesNotKnow(t *testing.T) {
	for theirs, want := range map[string]string{
		"":      "the daemon is older and does not know GET /v1/backup\nrestart it: daycare restart",
		"0.0.9": "the daemon is older (0.0.9, this program is 0.1.0) and does not know GET /v1/backup\nrestart it: daycare restart",
		"0.2.0": "the daemon is newer (0.2.0, this program is 0.1.0) and does not know GET /v1/backup\n" +
			"use the newer program: daycare update",
		"0.1.0": "no route GET /v1/backup",
	} {
		c := NewClient(Local(Handler((&fake{}).backend(), Options{Version: theirs}))) // it has no backups
		c.Introduce("0.1.0", func(string) {})
		_, err := c.Backup(t.Context(), false)
		if err == nil {
			t.Fatalf("%q: a backup came", theirs)
		}

		got := err.Error()
		if other := fault.Find(err); theirs != "0.1.0" {
			got += "\n" + other.Hint
		}
		if got != want {
			t.Errorf("version %q: %q, want %q", theirs, got, want)
		}
	}
}

type fakeBackups struct {
	first string
	err   error
}

func (f fakeBackups) Backup(_ context.Context, to io.Writer, secrets bool) error {
	if f.first == "" {
		return f.err
	}
	if secrets {
		f.first += " with secrets"
	}
	_, err := io.WriteString(to, f.first)

	return errors.Join(f.err, err)
}

// An error before the first byte is an answer; keys leave the machine for nobody else.
func TestBackupsOverTheAPI(t *testing.T) {
	b := (&fake{}).backend()
	b.Backups = fakeBackups{first: "archive"}
	c := NewClient(Local(Handler(b, Options{})))
	r, err := c.Backup(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}

	data, err := io.ReadAll(r)
	if string(data) != "archive with secrets" || err != nil || r.Close() != nil {
		t.Errorf("%q, %v", data, err)
	}
	req := httptest.NewRequest(get, "/v1/backup?secrets=1", nil)
	rec := httptest.NewRecorder()
	Handler(b, Options{}).ServeHTTP(rec, req.WithContext(WithCaller(t.Context(), Caller{Name: "api", Rights: apitoken.Everything})))
	if rec.Code != http.StatusForbidden || strings.Contains(rec.Body.String(), "archive") {
		t.Errorf("from another machine: %d %s", rec.Code, rec.Body)
	}

	b.Backups = fakeBackups{err: errors.New("no room")}
	_, err = NewClient(Local(Handler(b, Options{}))).Backup(t.Context(), false)
	if err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("an error before the first byte: %v", err)
	}

	var log bytes.Buffer
	b.Backups = fakeBackups{first: "half", err: errors.New("no room")}
	h := Handler(b, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if _, _, text := raw(t, h, "GET", "/v1/backup", ""); text != "half" || !strings.Contains(log.String(), "no room") {
		t.Errorf("an error behind the first byte: %q, and the log has %s", text, &log)
	}
}
