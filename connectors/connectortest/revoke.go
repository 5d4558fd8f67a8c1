package connectortest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"
)

// revoked: a secret that is revoked while the connector runs ends Run, or has the next try of it
// fail, with an error that says what to do; with the secret valid again nothing was lost.
func revoked(t *testing.T, p *platform) {
	if p.Revoke == nil {
		t.Skip("this platform does not tell of it")
	}
	e, c := newEngine(t), p.new(t)
	said := make(chan string, 1)
	stop := p.runAgain(t, c, e.deliver, func(err error) {
		if err != nil {
			select {
			case said <- err.Error():
			default:
			}
		}
	})
	p.offer(t, Message{Key: "before", Text: "before"})

	p.Revoke(true)
	told := ""
	for end := time.Now().Add(patience); !remedy(told); {
		if time.Now().After(end) {
			t.Fatalf("Run said %q of a secret that was revoked, want what to do: daycare auth set, or connectors test", told)
		}
		if p.Sent != nil { // some are told when they send
			short, enough := context.WithTimeout(t.Context(), time.Second)
			_, err := c.Send(short, p.answer("revoked", "answer"))
			enough()
			p.heard(err)
		}
		select {
		case told = <-said:
		case <-time.After(10 * time.Millisecond):
		}
	}

	p.Revoke(false)
	p.offer(t, Message{Key: "after", Text: "after"})
	stop()
	if got := e.texts(); !slices.Equal(got, []string{"before", "after"}) {
		t.Errorf("delivered %q, want what was said before and after, each once", got)
	}
}

// remedy reports whether an error says what to do about a secret.
func remedy(text string) bool {
	return strings.Contains(text, "daycare auth set ") || strings.Contains(text, "daycare connectors test ")
}
