package permission

import (
	"testing"
	"time"
)

// A request is another question as soon as anything in it is, and the same however it is answered.
func TestWhatMakesAnotherQuestion(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	ask := func() Pending {
		return Pending{Token: "t", Agent: "a", Owner: Owner{Connector: "c", UserID: "u"}, Request: Request{Tag: "@web:x", Reason: "r",
			Detail: Detail{Host: "x"}}, SHA256: "s", AskedAt: now, ExpiresAt: now.Add(time.Hour)}
	}
	for name, tt := range map[string]struct {
		change func(p *Pending)
		same   bool
	}{
		"nothing":    {func(*Pending) {}, true},
		"its answer": {func(p *Pending) { p.Decision, p.DecidedBy, p.DecidedAt = Once, "ada", now }, true},
		"a zone":     {func(p *Pending) { p.AskedAt = p.AskedAt.In(time.FixedZone("x", 3600)) }, true},
		"its token":  {func(p *Pending) { p.Token = "u" }, false},
		"its agent":  {func(p *Pending) { p.Agent = "b" }, false},
		"its owner":  {func(p *Pending) { p.Owner.UserID = "v" }, false},
		"its reason": {func(p *Pending) { p.Request.Reason = "q" }, false},
		"its host":   {func(p *Pending) { p.Request.Detail.Host = "y" }, false},
		"its sum":    {func(p *Pending) { p.SHA256 = "z" }, false},
		"its time":   {func(p *Pending) { p.AskedAt = p.AskedAt.Add(1) }, false},
		"its end":    {func(p *Pending) { p.ExpiresAt = p.ExpiresAt.Add(1) }, false},
	} {
		b := ask()
		tt.change(&b)
		if sameQuestion(ask(), b) != tt.same || sameQuestion(b, ask()) != tt.same {
			t.Errorf("%s: the same question: %v", name, !tt.same)
		}
	}
}
