package agents

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/disk"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/workspace"
)

// A right to hosts that nobody named, which answered a request, does not apply once the turn
// has read something from outside since. Every other right does.
func TestWhichRightsATurnLosesByReading(t *testing.T) {
	read := time.Unix(1000, 0)
	earlier, later := disk.StampOf(read.Add(-time.Second)), disk.StampOf(read.Add(time.Second))
	for name, tt := range map[string]struct {
		grant permission.Grant
		host  string
		stays bool
	}{
		"any host":               {permission.Grant{Tag: "@web", Token: "t", At: earlier}, "x.example", false},
		"a pattern":              {permission.Grant{Tag: "@web:*.example", Token: "t", At: earlier}, "x.example", false},
		"this host":              {permission.Grant{Tag: "@web:x.example", Token: "t", At: earlier}, "x.example", true},
		"any host, given since":  {permission.Grant{Tag: "@web", Token: "t", At: later}, "x.example", true},
		"any host, by the owner": {permission.Grant{Tag: "@web", At: earlier}, "x.example", true},
	} {
		set, err := permission.Set{}.Grant(tt.grant)
		if err != nil {
			t.Fatal(err)
		}
		host := permission.Web{Host: tt.host}
		sources := []record.Source{{Source: "https://example.com/", At: disk.StampOf(read)}}
		if !guarded(set, nil).Allows(host) {
			t.Errorf("%s: a turn that has read nothing may not", name)
		}
		if got := guarded(set, sources).Allows(host); got != tt.stays {
			t.Errorf("%s: after reading it applies: %v, want %v", name, got, tt.stays)
		}
		if !set.Allows(host) {
			t.Errorf("%s: the agent's own set was changed", name)
		}
	}
}

// A tool of an MCP server, allowed by an answer, is asked for again once the turn has read
// something that this server did not say.
func TestToolsOfMcpServersAreAskedForAgainAfterReading(t *testing.T) {
	read := time.Unix(1000, 0)
	earlier := disk.StampOf(read.Add(-time.Second))
	right := permission.Mcp{Server: "files", Tool: "write"}
	web := record.Source{Source: "https://example.com/", At: disk.StampOf(read)}
	own := record.Source{Source: right.SourceOf(), At: disk.StampOf(read)}
	for name, tt := range map[string]struct {
		grant   permission.Grant
		sources []record.Source
		stays   bool
	}{
		"nothing was read":        {permission.Grant{Tag: right.Tag(), Token: "t", At: earlier}, nil, true},
		"a page was read":         {permission.Grant{Tag: right.Tag(), Token: "t", At: earlier}, []record.Source{web}, false},
		"the server was read":     {permission.Grant{Tag: right.Tag(), Token: "t", At: earlier}, []record.Source{own}, true},
		"both were read":          {permission.Grant{Tag: "@mcp:files", Token: "t", At: earlier}, []record.Source{own, web}, false},
		"the owner said it as so": {permission.Grant{Tag: "@mcp:files", At: earlier}, []record.Source{web}, true},
	} {
		set, err := permission.Set{}.Grant(tt.grant)
		if err != nil {
			t.Fatal(err)
		}
		if got := guarded(set, tt.sources).Allows(right); got != tt.stays {
			t.Errorf("%s: it applies: %v, want %v", name, got, tt.stays)
		}
	}
}

// A request reaches outside where nothing holds it: a command without a sandbox, a message
// to somebody else.
func TestWhichRequestsReachOutside(t *testing.T) {
	for name, tt := range map[string]struct {
		r    permission.Request
		want bool
	}{
		"a command without a sandbox": {permission.Request{Tag: "@exec:ls", Sandbox: permission.NoSandbox}, true},
		"a command in a sandbox":      {permission.Request{Tag: "@exec:ls", Sandbox: "full"}, false},
		"a message":                   {permission.Request{Tag: permission.Message{Agent: strings.Repeat("a", 24)}.Tag()}, true},
		"a tool of an MCP server":     {permission.Request{Tag: "@mcp:files/write"}, true},
		"a task for a remote agent":   {permission.Request{Tag: "@a2a:example.org"}, true},
		"a folder":                    {permission.Request{Tag: "@read:/srv"}, false},
	} {
		if got := outside(tt.r); got != tt.want {
			t.Errorf("%s reaches outside: %v, want %v", name, got, tt.want)
		}
	}
}

// What each decision does to the rights in state.json: what was asked for as such is
// widened, an answer to one exact request is for exactly that.
func TestWhatADecisionChanges(t *testing.T) {
	general, err := permission.General("@read:/srv", "")
	if err != nil {
		t.Fatal(err)
	}
	const always, revoked, profiled = string(permission.Always), string(permission.Revoked), string(permission.Profiled)
	budget := permission.Budget{Scope: permission.BudgetTotal, Unit: permission.Tokens, Limit: 10, More: 10}.Request("").Tag
	for name, tt := range map[string]struct {
		it   inbox.Item
		want func(s *permission.Set) // what it changes; nil: nothing
	}{
		"once":    {inbox.Item{Decision: string(permission.Once), Tag: "@read:/srv"}, nil},
		"deny":    {inbox.Item{Decision: string(permission.Deny), Tag: "@read:/srv"}, nil},
		"budget":  {inbox.Item{Decision: always, Tag: budget}, nil},
		"profile": {inbox.Item{Decision: profiled, Tag: "read-only"}, func(s *permission.Set) { s.Profile = permission.ReadOnly }},
		"revoked": {inbox.Item{Decision: revoked, Tag: "@read:/old"}, func(s *permission.Set) { s.ReadDirs = []string{} }},
		"always, of a right": {inbox.Item{Decision: always, Tag: "@read:/srv", SHA256: general.SHA256("a"), By: "ada", Token: "t"},
			func(s *permission.Set) {
				s.ReadDirs = []string{"/old", "/srv"}
				s.Grants = []permission.Grant{{Tag: "@read:/srv", By: "ada", Token: "t"}}
			}},
		"always, of one request": {inbox.Item{Decision: always, Tag: "@read:/srv", SHA256: "exact", By: "ada", Token: "t"},
			func(s *permission.Set) {
				s.Grants = []permission.Grant{{Tag: "@read:/srv", By: "ada", Token: "t", SHA256: "exact"}}
			}},
	} {
		had := permission.Set{ReadDirs: []string{"/old"}}
		state := record.State{Permissions: had}
		do := change("a", tt.it)
		if (do == nil) != (tt.want == nil) {
			t.Errorf("%s changes something: %v", name, do != nil)
			continue
		}
		if do == nil {
			continue
		}
		do(&state)
		for i := range state.Permissions.Grants {
			state.Permissions.Grants[i].At = disk.Stamp{}
		}
		tt.want(&had)
		if diff := cmp.Diff(had, state.Permissions); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// answer is a decision that comes by itself.
func (b *bench) answer(d permission.Decision, tag, by string) {
	b.t.Helper()
	r, err := b.box.Accept(b.t.Context(), inbox.Item{Kind: message.Permission, Token: "t", Decision: string(d), Tag: tag, By: by})
	if err != nil {
		b.t.Fatal(err)
	}
	b.wait(r.Item)
}

// A right to a folder is to the folder that its owner gave, not to what takes its place. It
// is to the new one when the owner gives it again; an agent that shares it changes nothing.
func TestARightIsToTheFolderThatWasGiven(t *testing.T) {
	b := newBench(t, callHold)
	root := t.TempDir()
	given := filepath.Join(root, "given")
	folders := permission.NewFolders("")
	b.opts.Folders = folders
	opens := func() bool {
		dir, _, err := folders.Open(given)
		if err == nil {
			dir.Close()
		}
		return err == nil
	}
	exchange := func(n string) {
		t.Helper()
		err := os.Rename(given, filepath.Join(root, n)) // it stays, so that its number is not used again
		if err := errors.Join(err, os.Mkdir(given, 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(given, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := record.UpdateState(b.vol, b.dir, func(s *record.State) { s.Permissions.ReadDirs = []string{given} }); err != nil {
		t.Fatal(err)
	}
	edited := make(chan struct{})
	b.opts.Edited = edited
	b.run()
	b.outcome(b.say("hello"))
	if exchange("1"); opens() {
		t.Error("a folder that took the place of one that state.json names is open")
	}
	if b.answer(permission.Always, "@read:"+given, "agent other"); opens() {
		t.Error("it is open since another agent shared it")
	}
	if b.answer(permission.Once, "@read:"+given, "ada"); opens() {
		t.Error("it is open since its owner allowed one call")
	}
	if b.answer(permission.Always, "@read:"+given, "ada"); !opens() {
		t.Error("it is not open although its owner gave it again")
	}
	exchange("2")
	if b.answer(permission.Revoked, "@read:"+given, "ada"); opens() {
		t.Error("it is open since it was taken back")
	}
	s, _, _, err := record.ReadState(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	s.Permissions.ReadDirs = []string{given}
	data, err := record.EncodeState(workspace.Of(b.dir), s)
	if err != nil {
		t.Fatal(err)
	}
	b.writeState(string(data))
	edited <- struct{}{}
	within(t, "it is open since its owner wrote it into the file", opens)
}

// A right that somebody gave in a word answers no request: it is not asked for again, nothing
// leaves the queue, and nobody is told of an answer.
func TestARightGivenInAWordIsNotAskedForAgain(t *testing.T) {
	b := newBench(t, untrustedScript, page{}, reaching{true})
	over := &overseeing{}
	b.opts.Overseer = over
	b.run()
	r, err := b.box.Accept(t.Context(), inbox.Item{Kind: message.Permission, Silent: true, Tag: "@web", By: "ada",
		Decision: string(permission.Always)})
	if err != nil {
		t.Fatal(err)
	}
	b.wait(r.Item)
	if o := b.outcome(b.say("read")); o.Text != "reached" {
		t.Errorf("after reading the host is %q", o.Text)
	}
	b.halt()
	if len(over.notes) != 0 || len(b.waiting()) != 0 {
		t.Errorf("told is %q, %d requests wait", over.notes, len(b.waiting()))
	}
}

// What cannot be noted of folders is in the log, and the agent works on.
func TestFoldersThatCannotBeNotedAreLogged(t *testing.T) {
	b := newBench(t, callHold)
	broken := disk.NewVolume(t.TempDir())
	folders, err := permission.OpenFolders(broken, workspace.At(t.TempDir()), func(string, error) {})
	if err != nil {
		t.Fatal(err)
	}
	broken.Fail(errors.New("seeded"))
	known, given := t.TempDir(), t.TempDir()
	if err := record.UpdateState(b.vol, b.dir, func(s *record.State) { s.Permissions.ReadDirs = []string{known} }); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	b.opts.Folders, b.opts.Log = folders, slog.New(slog.NewTextHandler(&log, nil))
	b.run()
	b.answer(permission.Always, "@read:"+given, "ada")
	b.outcome(b.say("hello"))
	b.halt()
	for _, want := range []string{"the agent's folders are not pinned", "folder is not pinned"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say that %s:\n%s", want, &log)
		}
	}
	if !slices.Contains(b.texts(), "heard: hello") {
		t.Errorf("the agent says %q", b.texts())
	}
}
