package config

import (
	"fmt"
	"regexp"
	"slices"

	"daycare/engine/finding"
)

// guarding are the moments at which a hook can refuse something, so that it can be refused
// as well when the hook fails.
var guarding = []string{"on_message", "before_prompt", "before_tool"}

// checkHooks reports keys of hooks that are wrong or without effect at their moment.
func (r *reader) checkHooks(h Hooks) {
	for _, m := range h.Moments() {
		moment := m.Name
		aboutTools := moment == "before_tool" || moment == "after_tool"
		for i, hook := range m.Hooks {
			at := func(key string) string { return entry("hooks."+moment, i, key) }
			if _, err := regexp.Compile(Matching(hook.Matcher)); err != nil {
				r.Bad(at("matcher"), `: found %q, allowed: a regular expression over tool names, such as "edit|write"`, hook.Matcher)
			}
			if hook.Matcher != "" && !aboutTools {
				r.unusedKey(at("matcher"), "only before_tool and after_tool choose by the name of a tool")
			}
			if hook.Approve && moment != "before_tool" {
				r.unusedKey(at("approve"), "only before_tool can answer an approval")
			}
			if hook.OnError == "deny" && !slices.Contains(guarding, moment) {
				r.Bad(at("onError"), `: found "deny", allowed: "allow": at %s there is nothing to deny`, moment)
			}
		}
	}
}

func (r *reader) unusedKey(at, why string) {
	r.Tell(finding.Warning, "unused", at, fmt.Sprintf("%s has no effect: %s", at, why), "take it out")
}

// Matching returns the regular expression of a matcher, anchored to the whole name.
func Matching(matcher string) string {
	if matcher == "" || matcher == "*" {
		return ""
	}
	return "^(?:" + matcher + ")$"
}
