package connectortest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"daycare/connectors/chat"
)

// A knocker is a chat.Door that decides about strangers by itself.
type admission func(context.Context, chat.Stranger) (chat.Reply, bool)

func (k admission) Ask(ctx context.Context, s chat.Stranger) (chat.Reply, bool) { return k(ctx, s) }

func (admission) Admit(context.Context, string, string, bool, string) (string, error) { return "", nil }

// strangers: a user who is not on the allow list gets the code from the host,
// and what they wrote goes nowhere. Without a code they get no answer.
func strangers(t *testing.T, p *platform) {
	if p.Strangers == nil {
		t.Skip("nobody talks over this platform")
	}
	const code = "PAIR2345"
	var mu sync.Mutex
	var knocked []chat.Stranger
	p.Strangers.Host.Admission = admission(func(_ context.Context, s chat.Stranger) (chat.Reply, bool) {
		mu.Lock()
		defer mu.Unlock()
		knocked = append(knocked, s)
		if len(knocked) > 1 {
			return chat.Reply{}, true
		}

		return chat.Reply{Code: code}, true
	})
	e, c := newEngine(t), p.new(t)
	p.run(t, c, e.deliver)
	p.offer(t, Message{Key: "real", Text: "real"}) // it runs
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	p.Strangers.Write(ctx, Message{Key: "knock1", Text: "a secret of mine"})
	p.Strangers.Write(ctx, Message{Key: "knock2", Text: "another one"})
	p.offer(t, Message{Key: "after", Text: "after"})
	if got := e.texts(); !slices.Equal(got, []string{"real", "after"}) {
		t.Errorf("delivered %q, want nothing of a stranger", got)
	}

	mu.Lock()
	defer mu.Unlock()
	if len(knocked) != 2 || knocked[0].From.Connector != c.ID() || knocked[0].From.UserID == "" || knocked[0].From.ChannelID == "" ||
		knocked[0].From.UserID != knocked[1].From.UserID {
		t.Fatalf("asked about %+v, want one stranger twice", knocked)
	}

	var told []string
	for _, s := range p.Strangers.Told() {
		if strings.Contains(s.Text, code) {
			told = append(told, s.Text)
		}
	}

	if len(told) == 0 || strings.Contains(strings.Join(told, ""), "secret of mine") {
		t.Errorf("told %q, want the code and nothing of the message", told)
	}
}
