package permission

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/event"
	"daycare/engine/finding"
)

func TestParseAtItsBounds(t *testing.T) {
	for tag, want := range map[string]Access{
		"@message:" + agent: Message{agent}, "@exec:" + agent: Exec{agent}, "@plan": Plan{}, "@web": Web{},
		"@web:*.A.example": Web{"*.a.example"},
		" @read:/a/../b ":  Read{"/b "}, "@write:/a/": Write{"/a"}, "@exec: git push ": Exec{"git push"},
		"@message:me": nil, "@message": nil, "@plan:x": nil, "@web:": nil, "@web:a b": nil, "@web:" + strings.Repeat("a.", 127) + "a": nil,
		"@read:b": nil, "@write": nil, "@exec:": nil, "@exec": nil, agent: nil, "": nil, "@exec:a\x7f": nil, "@exec:a\n": nil,
		"@exec:" + strings.Repeat("a", maxTag-6): Exec{strings.Repeat("a", maxTag-6)}, "@exec:" + strings.Repeat("a", maxTag-5): nil,
		"@web:" + strings.Repeat("a.", 126) + "a": Web{strings.Repeat("a.", 126) + "a"},
	} {
		got, err := Parse(tag)
		if got != want || (err == nil) != (want != nil) || err != nil && !errors.Is(err, ErrTag) {
			t.Errorf("%.40q is %#v, %v, want %#v", tag, got, err, want)
		}
	}
}

// What users read of a request: each fact that there is, and none that there is not.
func TestCard(t *testing.T) {
	full := Request{Tag: "@exec:git push", Reason: "publish", Detail: Detail{Command: "git push\ngit log\n"},
		Workdir: "/ws", Sandbox: "bwrap",
		Programs: []string{"git: /usr/bin/git"}, Scripts: []Script{{Path: "/ws/x", SHA256: "00"}}, Sources: []string{"https://a.example/"}}
	want := `    git push
    git log
permission  @exec:git push
folder      /ws
sandbox     bwrap
runs        git: /usr/bin/git
script      /ws/x, sha256 00
untrusted   this turn read https://a.example/
reason      publish
`
	if diff := cmp.Diff(want, full.Card()); diff != "" {
		t.Errorf("a full card (-want +got):\n%s", diff)
	}
	if got := (Request{Tag: "@web"}).Card(); got != "permission  @web\n" {
		t.Errorf("a card of nothing but a tag: %q", got)
	}
	if got := (Request{Tag: "@web", Sandbox: NoSandbox}).Card(); got != "permission  @web\nsandbox     none: the "+
		"command can do whatever you can do\n" {
		t.Errorf("a card without a sandbox: %q", got)
	}
}

func TestChoices(t *testing.T) {
	general, err := General("@web", "")
	if err != nil {
		t.Fatal(err)
	}

	for name, tt := range map[string]struct {
		r    Request
		want string
	}{
		"a command": {Request{Tag: "@exec:git", Detail: Detail{Command: "git log"}},
			"once always:Always this exact command deny"},
		"a command with a rule": {Request{Tag: "@exec:git", Detail: Detail{Command: "git log"}, Prefix: "@exec:git"},
			"once always:Always this exact command prefix:Always commands that begin with `git` deny"},
		"a path":            {Request{Tag: "@read:/a", Detail: Detail{Path: "/a/b"}}, "once always:Always exactly this deny"},
		"a right":           {general, "once always:Always @web deny"},
		"a right somewhere": {Request{Tag: "@web", Detail: general.Detail, Workdir: "/ws"}, "once always:Always exactly this deny"},
	} {
		var got []string
		for _, c := range tt.r.Choices() {
			if c.Decision == string(Once) && c.Text == "Once" || c.Decision == string(Deny) && c.Text == "Deny" {
				got = append(got, c.Decision)
			} else {
				got = append(got, c.Decision+":"+c.Text)
			}
		}
		if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The API shows all of a request.
func TestAskHasAll(t *testing.T) {
	p := Pending{Token: "tok", Agent: agent, AskedAt: noon, ExpiresAt: noon,
		Request: Request{Tag: "@exec:a", Reason: "why", Detail: Detail{Command: "a"},
			Workdir: "/ws", Sandbox: "bwrap", Programs: []string{"p"}, Prefix: "@exec:a", Sources: []string{"s"}}}
	r := p.Request
	want := event.Ask{Token: "tok", AgentID: agent, Tag: "@exec:a", Reason: "why", Request: "a", Shown: "a",
		Facts: r.Facts(), Card: r.Card(), Choices: r.Choices(),
		Kind: "command", Folder: "/ws", Sandbox: "bwrap", Programs: []string{"p"}, Prefix: "@exec:a", Untrusted: []string{"s"},
		AskedAt: noon, ExpiresAt: noon}
	if diff := cmp.Diff(want, p.Ask()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	p.Decision, p.DecidedBy, p.DecidedAt = Deny, "ada", noon.Add(time.Minute)
	at := p.DecidedAt
	want.Decision, want.DecidedBy, want.DecidedAt, want.Choices = string(Deny), "ada", &at, nil
	if diff := cmp.Diff(want, p.Ask()); diff != "" {
		t.Errorf("decided (-want +got):\n%s", diff)
	}
	if p.DedupeKey() != "perm:tok" {
		t.Errorf("the key of the decision is %q", p.DedupeKey())
	}
}

// The kind of a request says which of its details is shown.
func TestKindsOfRequests(t *testing.T) {
	d := Detail{Command: "command", Diff: "diff", Path: "path", Host: "host", Budget: "budget", Call: "call"}
	for _, shown := range []*string{&d.Command, &d.Diff, &d.Path, &d.Host, &d.Budget, &d.Call} {
		if d.kind() != *shown || d.String() != *shown {
			t.Errorf("%q is shown as %q, of kind %q", *shown, d.String(), d.kind())
		}
		*shown = ""
	}
	if d.kind() != "" || d.String() != "" {
		t.Errorf("nothing is shown as %q, of kind %q", d.String(), d.kind())
	}
}

// A request for a right as such names it, and only its own hash is that of the right.
func TestGeneral(t *testing.T) {
	for tag, want := range map[string]Detail{
		"@read:/a/": {Path: "/a"}, "@write:/a": {Path: "/a"}, "@web": {Host: "any host"},
		"@web:a.example": {Host: "a.example"}, "@exec:git push": {Command: "git push …"},
		"@mcp:files": {Call: "every tool of the MCP server files"}, "@mcp:files/read": {Call: "files/read with any arguments"},
		"@a2a:a.example": {Call: "any task for an agent at a.example"},
	} {
		r, err := General(tag, "why")
		if err != nil || r.Detail != want || r.Reason != "why" || !r.general() {
			t.Errorf("%s: %+v, %v, want %+v", tag, r, err, want)
		}
		sha := r.SHA256(agent)
		if !IsGeneral(agent, tag, sha) || IsGeneral("other", tag, sha) || IsGeneral(agent, "@web:b.example", sha) ||
			IsGeneral(agent, "nonsense", sha) {
			t.Errorf("%s: its hash is not its alone", tag)
		}
	}

	for _, tag := range []string{"@plan", "@message:" + agent, "nonsense"} {
		if _, err := General(tag, ""); !errors.Is(err, ErrTag) {
			t.Errorf("%s is asked for: %v", tag, err)
		}
		if (Request{Tag: tag}).general() || IsGeneral(agent, tag, Request{Tag: tag}.SHA256(agent)) {
			t.Errorf("%s is a right as such", tag)
		}
	}
}

// An answer of someone who is not an owner gives nothing beyond the ceiling.
func TestCeilingCovers(t *testing.T) {
	s, err := Ceiling([]string{"@exec:git", "@web:a.example", "@read:/r"})
	if err != nil || len(s.Grants) != 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	if _, err := Ceiling([]string{"@web", "nonsense"}); !errors.Is(err, ErrTag) {
		t.Errorf("a ceiling of nonsense: %v", err)
	}

	command := func(text string) Request { return Request{Tag: "@exec:git", Detail: Detail{Command: text}} }
	general, err := General("@exec:git push", "")
	if err != nil {
		t.Fatal(err)
	}
	ruled := command("git log; rm -rf x")
	ruled.Prefix = "@exec:git log"
	wide := command("git log")
	wide.Prefix = "@exec:rm"
	loose := command("git log")
	loose.Sandbox = NoSandbox

	for name, tt := range map[string]struct {
		r    Request
		d    Decision
		want bool
	}{
		"a command it covers":          {command("git log"), Once, true},
		"one with something behind it": {command("git log; rm -rf x"), Once, false},
		"one with a space of its name": {command("git\u00a0"), Once, false},
		"its rule is covered":          {ruled, Prefix, true},
		"its rule is not":              {wide, Prefix, false},
		"the same, once":               {wide, Once, true},
		"a right to commands":          {general, Always, true},
		"without a sandbox":            {loose, Once, false},
		"a host":                       {Request{Tag: "@web:a.example", Detail: Detail{Host: "a.example"}}, Always, true},
		"another host":                 {Request{Tag: "@web:b.example", Detail: Detail{Host: "b.example"}}, Always, false},
		"a file":                       {Request{Tag: "@read:/r/f"}, Once, true},
		"a file to write":              {Request{Tag: "@write:/r/f"}, Once, false},
		"a tag alone":                  {Request{Tag: "@exec:git log"}, Once, true},
		"no right":                     {Request{Tag: "nonsense"}, Once, false},
		"a host, and another too": {Request{Tag: "@web:a.example", Also: []string{"@web:b.example"},
			Detail: Detail{Command: "x"}}, Once, false},
		"a host and a folder":           {Request{Tag: "@web:a.example", Also: []string{"@read:/r/f"}}, Once, true},
		"a path that reads like a word": {Request{Tag: "@read:/r/f", Detail: Detail{Command: "git"}}, Once, true},
	} {
		if got := s.Covers(tt.r, tt.d); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// A finding says where a file is wrong, and a good file has none.
func TestCheckFile(t *testing.T) {
	p := Pending{Token: "tok", Agent: agent, Owner: owner, Request: request, SHA256: request.SHA256(agent), AskedAt: noon, ExpiresAt: noon}
	good, err := encode(p, "  ")
	if err != nil {
		t.Fatal(err)
	}
	if f := CheckFile("/x/tok.json", good); f != nil {
		t.Errorf("a good file: %v", f)
	}

	swap := func(old, new string) string { return strings.Replace(string(good), old, new, 1) }
	for name, tt := range map[string]struct {
		file, text   string
		line, column int
	}{
		"another name": {"/x/other.json", string(good), 0, 0},
		"no token":     {"/x/.json", swap(`"tok"`, `""`), 2, 12},
		"no agent":     {"/x/tok.json", swap(agent, ""), 3, 14},
		"no rule":      {"/x/tok.json", swap("null", `"prefix"`), 0, 0},
		"cut short":    {"/x/tok.json", "{\n  \"token\": }", 2, 12},
		"another type": {"/x/tok.json", "{\n  \"token\": 7}", 2, 12},
	} {
		f := CheckFile(tt.file, []byte(tt.text))
		if f == nil || f.ID != "permission-file" || f.Severity != finding.Error || f.File != tt.file {
			t.Errorf("%s: %v", name, f)
			continue
		}
		if f.Line != tt.line || f.Column != tt.column {
			t.Errorf("%s: at %d:%d, want %d:%d", name, f.Line, f.Column, tt.line, tt.column)
		}
	}
}
