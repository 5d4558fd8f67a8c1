package providers

import (
	"strings"

	"daycare/engine/lazyregexp"
)

// Of reports whether the reasoning was made by that model of that provider. No
// other can read it: some services drop what another model signed, some refuse the
// whole request. A Model of "" was recorded before models were.
func (r Reasoning) Of(provider, model string) bool {
	return r.Provider == provider && (r.Model == "" || SameModel(r.Model, model))
}

// pinned matches what vendors put behind a model's name to say which build it is.
var pinned = lazyregexp.New(`[-@](20\d{6}|20\d\d-\d\d-\d\d|latest|v\d+)$`)

// SameModel reports whether two names stand for one model: a vendor in front
// ("openai/", "models/") and a date behind do not count, nor does the case.
func SameModel(a, b string) bool { return plainName(a) == plainName(b) }

func plainName(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	name = name[strings.LastIndexByte(name, '/')+1:]
	return pinned.ReplaceAllString(strings.ReplaceAll(name, ".", "-"), "")
}
