package permission

import (
	"errors"
	"strings"
	"testing"
)

const someAgent = "q1mdtqzdaor58qk1b9egawlh"

// The card says what kind of budget it is, and each answer what it does.
func TestCardOfABudgetSaysWhatKindItIs(t *testing.T) {
	for name, tt := range map[string]struct {
		b    Budget
		want []string
	}{
		"everything, money": {Budget{BudgetTotal, "", USD, 5, 5},
			[]string{"beyond the budget of $5.00 for everything, ever", "budget.total.usd in settings.yaml",
				"Raise once: $5.00 more", "Raise limit to $10.00"}},
		"a day, money": {Budget{BudgetPerDay, "2026-11-22", USD, 2.5, 2.5},
			[]string{"of $2.50 for all agents on 2026-11-22", "budget.perDay.usd",
				"Raise once: $2.50 more on 2026-11-22", "Raise limit to $5.00"}},
		"an agent, tokens": {Budget{BudgetPerAgent, "", Tokens, 1_000_000, 500_000},
			[]string{"of 1,000,000 tokens for one agent", "budget.perAgent.tokens", "Raise once: 500,000 tokens more",
				"Raise limit to 1,500,000 tokens"}},
		"its own, a fraction of a cent": {Budget{someAgent, "", USD, 0.005, 0.005},
			[]string{"of $0.005 for agent " + someAgent, "budget.usd in its state.json", "Raise once: $0.005 more",
				"Raise limit to $0.01"}},
	} {
		r := tt.b.Request("it is used up")
		text := r.Card() + "\n"
		for _, c := range r.Choices() {
			text += c.Decision + " " + c.Text + "\n"
		}

		for _, want := range append(tt.want, "reason      it is used up", "permission  "+tt.b.Tag(), "deny Stop") {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is missing in\n%s", name, want, text)
			}
		}
		if back, ok := BudgetOf(r.Tag); !ok || back != tt.b {
			t.Errorf("%s: %s reads as %+v", name, r.Tag, back)
		}
	}
}

func TestWhatIsNotABudgetTag(t *testing.T) {
	for _, tag := range []string{"@budget", "@budget:", "@budget:total", "@budget:total:usd", "@budget:total:usd:5",
		"@budget:total:usd:+5", "@budget:total:usd:0+5",
		"@budget:total:usd:-1+5", "@budget:total:usd:NaN+5", "@budget:total:usd:Inf+5", "@budget:total:usd:5+1e300",
		"@budget:total:eur:5+5", "@budget:week:usd:5+5",
		"@budget:perDay:usd:5+5", "@budget:perDay/today:usd:5+5", "@budget:total/2026-11-22:usd:5+5",
		"@budget:total:usd:5+5:x", "@budget:../x:usd:5+5"} {
		if a, err := Parse(tag); !errors.Is(err, ErrTag) {
			t.Errorf("%s reads as %+v, %v", tag, a, err)
		}
	}
}

// Nobody is given a budget as a right, and only an owner can raise one.
func TestABudgetIsNoRightOfASet(t *testing.T) {
	b := Budget{BudgetTotal, "", USD, 5, 5}
	if _, err := General(b.Tag(), ""); !errors.Is(err, ErrTag) {
		t.Errorf("it can be asked for by a tool: %v", err)
	}
	if s, err := (Set{}).Grant(Grant{Tag: b.Tag()}); err == nil || s.Allows(b) {
		t.Errorf("it can be granted: %+v", s)
	}
	if _, err := Ceiling([]string{b.Tag()}); err == nil {
		t.Error("it can be in a ceiling")
	}

	wide, err := Ceiling([]string{"@web", "@read:/", "@write:/"})
	if err != nil || wide.Covers(b.Request(""), Once) || wide.Covers(b.Request(""), Always) {
		t.Errorf("a ceiling covers it: %v", err)
	}
}

// Each request that a limit refuses is the same question, however much it would cost.
func TestALimitIsAskedForOnce(t *testing.T) {
	b := Budget{BudgetPerDay, "2026-11-22", USD, 5, 5}
	more, next, raised := b, b, b
	more.More, next.Day, raised.Limit = 15, "2026-11-23", 10
	sha := b.Request("a").SHA256(someAgent)
	if more.Request("b").SHA256(someAgent) != sha {
		t.Error("a larger request is another question")
	}
	if next.Request("a").SHA256(someAgent) == sha || raised.Request("a").SHA256(someAgent) == sha {
		t.Error("the next day, or the limit that was raised, is the same question")
	}
}
