package agents

import (
	"context"
	"strings"
	"testing"

	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/record"
)

func (b *bench) order(kind message.Kind, text string) record.Outcome {
	b.t.Helper()
	r, err := b.box.Accept(context.Background(), inbox.Item{Kind: kind, Text: text})
	if err != nil {
		b.t.Fatal(err)
	}
	return b.outcome(r.Item)
}

func TestRewind(t *testing.T) {
	b := newBench(t, hear)
	b.run()
	b.wait(b.say("alpha"))
	if o := b.order(message.Mark, "here"); o.Reason != "mark" {
		t.Errorf("mark ended as %+v", o)
	}

	b.wait(b.say("bravo"))
	b.wait(b.say("charlie"))
	seen := func(item string) string {
		t.Helper()
		b.wait(item)
		return b.model.request(b.model.calls() - 1)
	}

	if o := b.order(message.Rewind, ""); o.Reason != "rewind" { // takes charlie back
		t.Errorf("rewind ended as %+v", o)
	}
	if r := seen(b.say("delta")); strings.Contains(r, "charlie") || !strings.Contains(r, "bravo") {
		t.Errorf("after taking one turn back the model reads:\n%s", r)
	}

	b.order(message.Rewind, "")
	b.order(message.Rewind, "") // delta, then bravo
	if r := seen(b.say("echo")); strings.Contains(r, "bravo") || !strings.Contains(r, "alpha") {
		t.Errorf("after taking two more turns back the model reads:\n%s", r)
	}
	b.order(message.Rewind, "here")
	if r := seen(b.say("foxtrot")); strings.Contains(r, "echo") || !strings.Contains(r, "alpha") {
		t.Errorf("after going back to the mark the model reads:\n%s", r)
	}

	for _, to := range []string{"nowhere", "99999"} {
		if o := b.order(message.Rewind, to); o.Reason != "refused" || !strings.Contains(o.Text, "cannot rewind") {
			t.Errorf("rewind to %s ended as %+v, want refused with the reason", to, o)
		}
	}
	if !strings.Contains(b.history(), "charlie") {
		t.Error("what was rewound is gone from the file")
	}
}
