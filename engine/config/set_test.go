package config

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// Setting one value changes that value and not a character beside it, whatever way the file
// is written in.
func TestSet(t *testing.T) {
	for name, tt := range map[string]struct{ before, keys, value, after string }{
		"no file":            {"", "budget.perDay.usd", "5", "budget:\n  perDay:\n    usd: 5\n"},
		"only comments":      {"# mine\n", "log.level", "debug", "# mine\nlog:\n  level: debug\n"},
		"no end of line":     {"log:\n  level: info", "agents.queue", "steer", "log:\n  level: info\nagents:\n  queue: steer\n"},
		"a plain value":      {"log:\n  level: info # why\n", "log.level", "warn", "log:\n  level: warn # why\n"},
		"a quoted value":     {"log: {level: 'it''s', x: 1}\n", "log.level", "warn", "log: {level: warn, x: 1}\n"},
		"a quote at the end": {"a: 'x'", "a", "b", "a: b"},
		"escapes":            {`a: "x\" # no" # yes` + "\n", "a", "b", "a: b # yes\n"},
		"a list":             {"a: [1, {b: ']'}] # c\n", "a", "[]", "a: [] # c\n"},
		"into braces": {"budget: { perDay: { usd: 5 } }\n", "budget.total.usd", "9",
			"budget: { total: { usd: 9 }, perDay: { usd: 5 } }\n"},
		"into empty braces": {"budget: {}\n", "budget.total.usd", "9", "budget: { total: { usd: 9 } }\n"},
		"a key and no more": {"log: # all\nagents:\n  queue: steer\n", "log.level", "debug",
			"log: # all\n  level: debug\nagents:\n  queue: steer\n"},
		"a value that lacks": {"log:\n  level: # none\n", "log.level", "debug", "log:\n  level: debug # none\n"},
		"behind the others": {"agents:\n  # comment of queue\n  queue: steer\n  rounds:\n    a: 1\n\n# next\nlog: {}\n",
			"agents.maxAwake", "7",
			"agents:\n  # comment of queue\n  queue: steer\n  rounds:\n    a: 1\n  maxAwake: 7\n\n# next\nlog: {}\n"},
		"an entry by its id": {"providers:\n  - id: a\n    model: x\n  - id: b\n    model: y\n", "providers.b.model", "z",
			"providers:\n  - id: a\n    model: x\n  - id: b\n    model: z\n"},
		"a new key of an entry": {"providers:\n  - id: a\n  - id: b\n", "providers.a.model", "z",
			"providers:\n  - id: a\n    model: z\n  - id: b\n"},
		"nothing in a sign": {"a: ~ # none\n", "a", "2", "a: 2 # none\n"},
		"an entry by its number": {"providers:\n  - id: a\n  - id: 7\n", "providers.7.model", "z",
			"providers:\n  - id: a\n  - id: 7\n    model: z\n"},
		"an entry by its place": {"hooks: [{run: x}, {run: y}]\n", "hooks.1.run", "z", "hooks: [{run: x}, {run: z}]\n"},
		"wide characters":       {"a: ä\nb: {c: ü, d: 1}\n", "b.d", "2", "a: ä\nb: {c: ü, d: 2}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Set([]byte(tt.before), tt.value, strings.Split(tt.keys, ".")...)
			if err != nil || string(got) != tt.after {
				t.Errorf("got %q, %v\nwant %q", got, err, tt.after)
			}
			if err := yaml.Unmarshal(got, &map[string]any{}); err != nil {
				t.Errorf("it is no YAML any more: %v", err)
			}
		})
	}
}

// What cannot be changed by one value is refused, with what to do.
func TestSetRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ before, keys, want string }{
		"text of several lines": {"a: |\n  x\n  y\n", "a", "daycare config edit"},
		"a block of keys":       {"a:\n  b: 1\n", "a", "daycare config edit"},
		"a value used twice":    {"a: &x {b: 1}\nc: *x\n", "c.b", "daycare config edit"},
		"what an alias takes":   {"a: &x {b: 1}\nc: *x\n", "a.b", "used in several places"},
		"what a merge takes":    {"a: &x {b: 1}\nc: {<<: *x}\n", "a.b", "used in several places"},
		"a sign before a text":  {"a: ! \"x\"\nb: hey!\n", "a", "daycare config edit"},
		"below an empty text":   {"a: \"\"\n", "a.b", "below a single value"},
		"an anchor":             {"a: &x 1\nc: *x\n", "a", "daycare config edit"},
		"no such entry":         {"providers:\n  - id: a\n", "providers.b.model", `no entry with the id "b"`},
		"below a value":         {"a: 1\n", "a.b", "below a single value"},
		"a key twice": {"a:\nb:\nb:\n", "b.c",
			`settings.yaml is not valid: line 3: mapping key "b" already defined at line 2; correct it first`},
		"no YAML": {"a: [\n", "a", "not YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Set([]byte(tt.before), "2", strings.Split(tt.keys, ".")...)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %q, %v; want an error with %q", got, err, tt.want)
			}
		})
	}
}

// A value that is not YAML and a file that is not have errors of their own.
func TestWhatIsNoValue(t *testing.T) {
	for _, value := range []string{"", "~", "[1", "a: b: c", "# why"} {
		_, set := Set([]byte("a: [1]\n"), value, "a")
		_, add := Append([]byte("a: [1]\n"), value, "a")
		for what, err := range map[string]error{"set": set, "add to": add} {
			if err == nil || !strings.HasPrefix(err.Error(), what+" a: ") ||
				!strings.Contains(err.Error(), "is not a value of YAML; put text in quotes") {
				t.Errorf("%s %q: %v", what, value, err)
			}
		}
	}
}

// Whatever the file and the value, what comes out is YAML, or an error.
func FuzzSet(f *testing.F) {
	f.Add("budget:\n  perDay: { usd: 5 }\n", "budget.perDay.usd", "7")
	f.Add("a: 'x'\nb: [1]\n", "b", "{}")
	f.Add("a:\nb:\nb:", "b", "{}")
	f.Fuzz(func(t *testing.T, before, keys, value string) {
		got, err := Set([]byte(before), value, strings.Split(keys, ".")...)
		if err == nil && yaml.Unmarshal(got, new(any)) != nil {
			t.Errorf("%q became %q", before, got)
		}
	})
}
