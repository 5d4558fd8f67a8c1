package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"daycare/engine/address"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/record"
)

// A parent reads how the turn of its child ended: which child, whether it failed, and what it
// says, also if it says nothing.
func TestAReportSaysHowTheTurnEnded(t *testing.T) {
	child := address.Meta{ID: "c1", Name: "prober"}
	labelled := child
	labelled.Descriptor = address.Descriptor{Label: "probe", Task: "probe it"}
	for _, tt := range []struct {
		child  address.Meta
		text   string
		failed bool
		want   []string
	}{
		{child, " it works\n", false, []string{"it works"}},
		{child, " \n", false, []string{"(no text)"}},
		{child, "no disk", true, []string{"prober", "c1", "failed", "no disk"}},
		{labelled, "it works", false, []string{"'probe' completed", "Task: probe it", "Result: it works"}},
		{labelled, "no disk", true, []string{"'probe' failed", "Task: probe it", "Result: no disk"}},
	} {
		got := reportText(tt.child, message.Outgoing{Text: tt.text, Report: &message.Report{Failed: tt.failed}})
		for _, want := range tt.want {
			if !strings.Contains(got, want) {
				t.Errorf("the report of %q (failed: %v) is %q, which lacks %q", tt.text, tt.failed, got, want)
			}
		}
		if !tt.failed && strings.Contains(got, "failed") {
			t.Errorf("the report of %q says that it failed: %q", tt.text, got)
		}
	}
}

// Nobody knows what a child has read whose history cannot be read: its report counts as read
// from outside, else it could carry a stranger's words as the parent's own knowledge.
func TestAReportOfUnknownSourcesIsUntrusted(t *testing.T) {
	h := newHousehold(t, Limits{})
	one := h.person("one")
	child, err := h.child(one, "c", false)
	must(t, err)
	send := func(id string) inbox.Item {
		t.Helper()
		_, err := parentConnector{h.mailroom}.Send(t.Context(), message.Outgoing{ID: id, Text: "done " + id,
			To: message.Address{Connector: message.ToAgent, ChannelID: one}, Report: &message.Report{From: child.ID}})
		must(t, err)
		var got inbox.Item
		waitFor(t, "the report "+id, func() bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			for _, it := range h.told {
				if it.Text == "done "+id {
					got = it
				}
			}
			return got.ID != ""
		})
		return got
	}

	if it := send("r1"); it.Source != "" {
		t.Errorf("a child that has read nothing reports from %q", it.Source)
	}
	waitFor(t, "the child sleeps", func() bool { _, awake := h.awake(child.ID); return !awake })
	must(t, record.AppendApart(h.vol, h.folder(child.ID), h.log, func(*record.Obligations) []record.Record {
		return []record.Record{&record.Start{Session: "s", V: record.Version},
			&record.TurnBegin{Turn: "t"}, &record.User{Item: "i", Text: "see this", Source: "https://example.com/"},
			&record.TurnEnd{Turn: "t", Items: []string{}, Reason: record.ReasonDone}}
	}))
	if it := send("read"); !strings.Contains(it.Source, "https://example.com/") || !strings.Contains(it.Source, child.Name) {
		t.Errorf("a child that has read a page reports from %q", it.Source)
	}
	history := filepath.Join(h.folder(child.ID), "history.jsonl")
	os.Remove(history)
	must(t, os.Mkdir(history, 0o700))
	if it := send("r2"); !strings.Contains(it.Source, "c") {
		t.Errorf("what the child has read cannot be known, and its report has the source %q", it.Source)
	}
}

// What one agent gives another to do is said by an agent, never by a user.
func TestTheTaskOfAChildIsNotAUsersWord(t *testing.T) {
	h := newHousehold(t, Limits{})
	one := h.person("one")
	_, err := h.child(one, "c", false)
	must(t, err)
	waitFor(t, "the task", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, it := range h.told {
			if it.Text == "do it" {
				if it.Kind != message.System || it.Origin != one {
					t.Errorf("the task came as a %s message of %q", it.Kind, it.Origin)
				}
				return true
			}
		}
		return false
	})
}
