package anthropic

import (
	"strings"

	"daycare/engine/lazyregexp"
)

// What a generation of Claude models takes is known by the model's name: the API
// answers 400 to what is not. Each rule is a closed list of the older ones.

// budgetOnly matches the models that know no adaptive thinking: a closed list, as
// every later one does.
var budgetOnly = lazyregexp.New(`claude-(3|(opus|sonnet|haiku)-4-([015]\b|20))`)

// older matches the models before Opus 4.7, where sampling parameters were taken
// away: a closed list as well.
var older = lazyregexp.New(`claude-(v?[12]|instant|3|(opus|sonnet|haiku)-4-([0-6]\b|20)|(opus|sonnet|haiku)-4$)`)

// tempered reports whether a model takes a temperature. Claude models since Opus
// 4.7 answer 400 to one; a compatible service's models are not Claude.
func tempered(model string) bool {
	return !strings.Contains(model, "claude") || older.MatchString(model)
}

// unbound matches the first models of generation 5, which, with those before
// them, do not look at what stands before a thinking block: a closed list.
var unbound = lazyregexp.New(`claude-((opus|sonnet|haiku|fable|mythos)-5($|-20|@)|mythos-preview)`)

// bound reports whether a model's thinking is bound to all that stood before it.
// A conversation that was shortened or edited by hand would be refused forever
// ("bound to a different conversation"); with dropBound the service leaves out the
// thinking that does not fit any more, and answers.
func bound(model string) bool {
	return strings.Contains(model, "claude") && !older.MatchString(model) &&
		!strings.Contains(model, "-4-") && !unbound.MatchString(model)
}

const (
	dropBound = `"block_binding":{"prefix_mismatch_behavior":"drop_block"}`
	// boundBeta is the Anthropic-Beta that dropBound needs.
	boundBeta = "thinking-binding-controls-2026-08-01"
)

// budgets are tokens of thinking; the least that the API takes is 1,024.
var budgets = map[string]int{"low": 2048, "medium": 8192, "high": 24576}
