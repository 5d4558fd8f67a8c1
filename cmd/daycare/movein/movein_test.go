package movein

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/record"
	"daycare/engine/workspace"
)

var update = flag.Bool("update", false, "write the tables anew")

// newWorkspace makes a folder with an empty .daycare.
func newWorkspace(t testing.TB) string {
	t.Helper()
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, workspace.Home), 0o700); err != nil {
		t.Fatal(err)
	}
	return root
}

// imported runs an import as the command does and returns what it prints.
func imported(t *testing.T, root, of, dir string, o options) (table, said string, err error) {
	t.Helper()
	var out, talk bytes.Buffer
	c := &term.App{Streams: term.Streams{In: strings.NewReader(""), Out: &out, Err: &talk, NoInput: true}, Workspace: root}
	err = run(context.Background(), c, kinds[of], dir, o)
	return out.String(), talk.String(), err
}

func sample(name string) string { return filepath.Join("testdata", "homes", name) }

// contents are the files of a .daycare, by hash.
func contents(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	home := filepath.Join(root, workspace.Home)
	err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "daycare.lock" {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(home, path)
		all[rel] = fmt.Sprintf("%x", sha256.Sum256(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	return all
}

// The table of each sample home is as it was looked at by a user; a second import changes
// nothing, and no key of the home is in the workspace.
func TestSampleHomes(t *testing.T) {
	for _, name := range []string{"openclaw", "openclaw-half", "claude", "picoclaw"} {
		t.Run(name, func(t *testing.T) {
			root := newWorkspace(t)
			of, _, _ := strings.Cut(name, "-")
			if _, _, err := imported(t, root, of, sample(name), options{dry: true}); err != nil {
				t.Fatal(err)
			}
			if got := contents(t, root); len(got) != 0 {
				t.Fatalf("a dry run wrote %v", slices.Sorted(maps.Keys(got)))
			}

			table, said, err := imported(t, root, of, sample(name), options{yes: true})
			if err != nil {
				t.Fatal(err)
			}
			files := contents(t, root)
			golden(t, name, table+said+"\n"+strings.Join(slices.Sorted(maps.Keys(files)), "\n")+"\n")

			table, said, err = imported(t, root, of, sample(name), options{yes: true})
			if err != nil || strings.Contains(table, "imported,") || !strings.Contains(said, "nothing new") {
				t.Errorf("the second import says %v\n%s%s", err, table, said)
			}
			if diff := cmp.Diff(files, contents(t, root)); diff != "" {
				t.Errorf("the second import changed files (-first +second):\n%s", diff)
			}

			leaks(t, root, "CANARY")
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-want +got:\n%s\nwrite it with: go test ./cmd/daycare/movein -update", diff)
	}
}

// leaks fails the test if a word is in a file of .daycare.
func leaks(t *testing.T, root, word string) {
	t.Helper()
	_ = filepath.WalkDir(filepath.Join(root, workspace.Home), func(path string, d fs.DirEntry, err error) error {
		if data, rerr := os.ReadFile(path); err == nil && rerr == nil && bytes.Contains(data, []byte(word)) {
			t.Errorf("%s has %s", path, word)
		}
		return err
	})
}

// An imported conversation is the history of an agent: what was said on the newest branch, or
// since the last summary, and nothing that is wrong with it.
func TestConversations(t *testing.T) {
	root := newWorkspace(t)
	for _, of := range []string{"openclaw", "picoclaw"} {
		if _, _, err := imported(t, root, of, sample(of), options{yes: true}); err != nil {
			t.Fatal(err)
		}
	}

	want := map[string]string{
		"openclaw/session/aaaa-1": "| What is the cat called? | Let me look.\n\nMomo. | Thanks, and the tea? " +
			"| Oolong.",
		"openclaw/session/aaaa-2":                        "They spoke of old things. | kept | new answer",
		"picoclaw/session/agent_main_telegram_direct_42": "Bob asked about boards. | Is the board flashed? | It is.",
	}
	for key, want := range want {
		program, id, _ := strings.Cut(key, "/")
		dir := filepath.Join(root, workspace.Home, "agents", idOf(program, id))
		c, err := record.ContextOf(dir)
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}

		said := []string{""}
		if c.Summary != nil {
			said[0] = c.Summary.Rec.(*record.Summary).Text
		}

		for _, e := range c.Entries {
			switch r := e.Rec.(type) {
			case *record.User:
				said = append(said, r.Text)
			case *record.Assistant:
				said = append(said, r.Text)
			}
		}

		if got := strings.TrimSpace(strings.Join(said, " | ")); got != want {
			t.Errorf("%s says %q, want %q", key, got, want)
		}
		if found, err := record.Check(dir, time.Now()); err != nil || finding.Join(found) != nil || len(found) > 0 {
			t.Errorf("%s: %v %v", key, found, err)
		}
	}
}

// The way to the newest message leaves out other branches; a line without an id is not on it, and neither is what
// names the session.
func TestTheBranchOfAConversation(t *testing.T) {
	for name, tt := range map[string]struct {
		all  []entry
		want string
	}{
		"a branch": {[]entry{{ID: "a"}, {ID: "b", ParentID: "a"}, {ID: "c", ParentID: "a"}, {ID: "d", ParentID: "b"}}, "a b d"},
		"without an id at the end": {[]entry{{Type: "session", ID: "s"}, {ID: "a", ParentID: "s"}, {ID: "b", ParentID: "a"},
			{Type: "custom"}}, "a b"},
		"the session at the end": {[]entry{{ID: "a"}, {ID: "b", ParentID: "a"}, {Type: "session", ID: "s"}}, "a b"},
		"in a circle":            {[]entry{{ID: "a", ParentID: "b"}, {ID: "b", ParentID: "a"}}, "a b"},
		"without ids":            {[]entry{{Summary: "x"}, {Summary: "y"}}, "x y"},
	} {
		var got []string
		for _, e := range branchOf(tt.all) {
			got = append(got, e.ID+e.Summary)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// taking is a daemon that takes agents.
type taking struct {
	control.Folders
	tars chan int64 // how long each was
}

func (f taking) Import(_ context.Context, tar io.Reader, _ string) (event.Agent, error) {
	n, err := io.Copy(io.Discard, tar)
	f.tars <- n
	return event.Agent{}, err
}

// Where a daemon runs it makes the agents, and this process makes none.
func TestAnImportBesideADaemon(t *testing.T) {
	root := newWorkspace(t)
	lock, _, err := disk.TryLock(workspace.At(root).Lock(), disk.Holder{PID: os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := lock.Release(); err != nil {
			t.Error(err)
		}
	}()
	log := slog.New(slog.DiscardHandler)
	l, err := control.ListenUnix(filepath.Join(root, workspace.Home), log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	folders := taking{tars: make(chan int64, 10)}
	go func() {
		ended <- control.Serve(ctx, control.Handler(control.Backend{Folders: folders}, control.Options{}), log, l)
	}()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()

	table, said, err := imported(t, root, "openclaw", sample("openclaw"), options{yes: true})
	if err != nil {
		t.Fatalf("%v\n%s%s", err, table, said)
	}
	if n := len(folders.tars); n != 2 || <-folders.tars < 1000 {
		t.Errorf("the daemon got %d agents, want those of the two conversations", n)
	}
	if term.Exists(filepath.Join(root, workspace.Home, "agents", idOf("openclaw", "session/aaaa-1"))) {
		t.Error("the agent was made by this process, too")
	}
}

// A file deep in a skill leaves no folder open.
func TestAPlacedFileLeavesNoDescriptor(t *testing.T) {
	open := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(list)
	}
	above, before := t.TempDir(), open()
	for n := range 20 {
		if err := (leaf{content: []byte("x")}).write(above, fmt.Sprintf("a/b/c/d/%d.txt", n)); err != nil {
			t.Fatal(err)
		}
	}
	if after := open(); after > before+10 {
		t.Errorf("%d descriptors are open, %d before", after, before)
	}
}

// What has a name already stays as it is: the other goes beside it, or is not taken.
func TestNothingIsOverwritten(t *testing.T) {
	root := newWorkspace(t)
	home := filepath.Join(root, workspace.Home)
	mine := map[string]string{
		"SOUL.md": "mine\n", "memory/MEMORY.md": "mine\n", "skills/tea/SKILL.md": "---\nname: tea\ndescription: mine\n---\nmine\n",
		"cron/morning-brief/TASK.md": "---\ntaskId: tz4a98xxat96iws9zmbrgj3a\nschedule: \"0 9 * * *\"\n---\nmine\n",
		"heartbeat/openclaw.md":      "mine\n",
	}
	for rel, text := range mine {
		write(t, filepath.Join(home, rel), text)
	}

	table, _, err := imported(t, root, "openclaw", sample("openclaw"), options{yes: true})
	if err != nil {
		t.Fatal(err)
	}

	for rel, want := range mine {
		if data, err := os.ReadFile(filepath.Join(home, rel)); err != nil || string(data) != want {
			t.Errorf("%s is %q %v", rel, data, err)
		}
	}

	for _, rel := range []string{"memory/MEMORY-2.md", "heartbeat/openclaw-2.md", "cron/morning-brief-2/TASK.md"} {
		if _, err := os.Stat(filepath.Join(home, rel)); err != nil {
			t.Errorf("not beside it: %v", err)
		}
	}

	for _, want := range []string{"SOUL.md  .+ merge the two by hand", "skills/tea .+ rename one of the two"} {
		if !term.Exists(home) || !matches(table, want) {
			t.Errorf("the table does not say %q:\n%s", want, table)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A home may be anybody's: links that lead out of it, pipes, files with several names and huge
// ones are refused one by one, and what they lead to arrives nowhere.
func TestHostileHome(t *testing.T) {
	outside, h, root := t.TempDir(), t.TempDir(), newWorkspace(t)
	secret := filepath.Join(outside, "id_rsa")
	write(t, secret, "TOP-SECRET\n")
	write(t, filepath.Join(outside, "skill", "SKILL.md"), "---\nname: x\ndescription: TOP-SECRET\n---\nTOP-SECRET\n")

	for rel, text := range map[string]string{
		"workspace/SOUL.md": "Be brief.\n", "workspace/memory/a.md": "a note\n",
		"workspace/skills/linked/SKILL.md": "---\nname: linked\ndescription: d\n---\nx\n",
		"workspace/skills/piped/SKILL.md":  "---\nname: piped\ndescription: d\n---\nx\n",
		"agents/main/sessions/x.jsonl":     `{"type":"message","message":{"role":"user","content":"hi"}}` + "\n",
	} {
		write(t, filepath.Join(h, rel), text)
	}

	link := func(to, rel string) {
		if err := os.Symlink(to, filepath.Join(h, rel)); err != nil {
			t.Fatal(err)
		}
	}
	link(secret, "workspace/USER.md")
	link(secret, "workspace/memory/leak.md")
	link(outside, "workspace/memory/folder")
	link(filepath.Join(outside, "skill"), "workspace/skills/whole")
	link(secret, "workspace/skills/linked/data.txt")
	link(secret, "cron")
	link(secret, "agents/main/sessions/leak.jsonl")
	if err := os.Link(secret, filepath.Join(h, "workspace/AGENTS.md")); err != nil {
		t.Fatal(err)
	}

	for _, rel := range []string{"workspace/HEARTBEAT.md", "workspace/skills/piped/pipe", "agents/main/sessions/pipe.jsonl"} {
		if err := syscall.Mkfifo(filepath.Join(h, rel), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(h, "workspace/memory/huge.md"), strings.Repeat("x", maxText+1))

	table, _, err := imported(t, root, "openclaw", h, options{yes: true})
	if err != nil {
		t.Fatal(err)
	}
	leaks(t, root, "TOP-SECRET")

	for _, want := range []string{"USER.md .+ symbolic link", "memory/leak.md .+ symbolic link", "memory/folder .+ symbolic link",
		"skills/whole .+ symbolic link", "skills/linked .+data.txt: it is a symbolic link", "skills/piped .+pipe: it is not a regular file",
		"AGENTS.md .+ several names", "HEARTBEAT.md .+ not a regular file", "huge.md .+ too large", "leak.jsonl .+ symbolic link",
		"pipe.jsonl .+ not a regular file", "SOUL.md .+ new", "memory/a.md .+ new", "x.jsonl .+ new"} {
		if !matches(table, want) {
			t.Errorf("the table does not say %q:\n%s", want, table)
		}
	}

	if term.Exists(filepath.Join(root, workspace.Home, "skills")) {
		t.Error("a skill arrived that was refused in part")
	}
}

// A disk that fails at any write, sync or rename of an import leaves nothing half in its place,
// and the next import takes what is missing.
func TestItemIsPlacedWholly(t *testing.T) {
	met := 0
	for n := 1; n <= 12; n++ {
		for _, fault := range []string{"enospc@movein.write#%d", "eio@movein.sync#%d", "eio@movein.rename#%d"} {
			fault = fmt.Sprintf(fault, n)
			t.Run(fault, func(t *testing.T) { met += placedWholly(t, fault) })
		}
	}
	if met < 20 {
		t.Errorf("only %d faults were met", met)
	}
}

func placedWholly(t *testing.T, fault string) (met int) {
	root := newWorkspace(t)
	skill := filepath.Join(root, workspace.Home, "skills", "tea")
	faults := crash.Arm(t, fault)
	for range 3 {
		_, _, err := imported(t, root, "openclaw", sample("openclaw"), options{yes: true})
		whole := term.Exists(filepath.Join(skill, "SKILL.md")) && term.Exists(filepath.Join(skill, "scripts/boil.sh"))
		if term.Exists(skill) && !whole {
			t.Fatal("half a skill is in its place")
		}
		if err == nil {
			break
		}
	}

	table, said, err := imported(t, root, "openclaw", sample("openclaw"), options{yes: true})
	if err != nil || !strings.Contains(said, "nothing new") {
		t.Errorf("in the end: %v\n%s%s", err, table, said)
	}
	if info, err := os.Stat(filepath.Join(skill, "scripts/boil.sh")); err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("the program of the skill is %v %v", info, err)
	}

	return len(faults())
}

// Another workspace of daycare arrives with its agents, tasks, memory, skills and commands. Its
// agents have the rights of new ones here.
func TestOtherWorkspace(t *testing.T) {
	from, root := newWorkspace(t), newWorkspace(t)
	for _, of := range []string{"openclaw", "claude"} {
		if _, _, err := imported(t, from, of, sample(of), options{yes: true}); err != nil {
			t.Fatal(err)
		}
	}

	id := idOf("openclaw", "session/aaaa-1")
	state := filepath.Join(from, workspace.Home, "agents", id, "state.json")
	data, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}

	write(t, state, strings.Replace(string(data), `"web": false`, `"web": true`, 1))
	write(t, filepath.Join(from, workspace.Home, "auth.json"), `{"x": "CANARY"}`)

	table, said, err := imported(t, root, "daycare", from, options{yes: true})
	if err != nil {
		t.Fatalf("%v\n%s%s", err, table, said)
	}
	got, want := contents(t, root), contents(t, from)
	for _, rel := range []string{"SOUL.md", "memory/MEMORY.md", "commands/review.md", "subagents/reviewer.md", "skills/tea/SKILL.md",
		"heartbeat/openclaw.md", filepath.Join("agents", id, "history.jsonl")} {
		if got[rel] == "" || got[rel] != want[rel] {
			t.Errorf("%s is not the same", rel)
		}
	}

	s, _, _, err := record.ReadState(filepath.Join(root, workspace.Home, "agents", id))
	if err != nil || s.Permissions.Web || s.Permissions.WorkingDir != root {
		t.Errorf("its rights are %+v %v", s.Permissions, err)
	}
	leaks(t, root, "CANARY")
	if _, said, err = imported(t, root, "daycare", from, options{yes: true}); err != nil || !strings.Contains(said, "nothing new") {
		t.Errorf("the second import says %v %s", err, said)
	}
	if _, _, err = imported(t, root, "daycare", root, options{yes: true}); err == nil {
		t.Error("a workspace can be imported into itself")
	}
}

// What is typed wrong is said with what to do.
func TestImportMistakes(t *testing.T) {
	root := newWorkspace(t)
	for dir, want := range map[string]string{"testdata/nothing": "there is no folder", "testdata/claude.golden": "is not a folder",
		t.TempDir(): "nothing that can be imported"} {
		_, _, err := imported(t, root, "claude", dir, options{yes: true})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", dir, err, want)
		}
	}

	if _, _, err := imported(t, root, "claude", sample("claude"), options{}); err == nil ||
		!strings.Contains(err.Error(), "cannot ask for confirmation without a terminal") {
		t.Errorf("without a question: %v", err)
	}
	var problem *term.Problem
	if err := imports(Import(&term.App{}), []string{"ops.tar"}); !errors.As(err, &problem) ||
		!strings.Contains(problem.Do, "agents import ops.tar") {
		t.Errorf("an exported agent: %v", err)
	}
}

// Nothing that a file says ends the program, and what is taken can be placed.
func FuzzReaders(f *testing.F) {
	for _, name := range []string{"openclaw/cron/jobs.json", "openclaw/agents/main/sessions/sessions.json",
		"openclaw/agents/main/sessions/aaaa-1.jsonl", "picoclaw/workspace/sessions/agent_main_telegram_direct_42.jsonl",
		"picoclaw/workspace/sessions/agent_main_telegram_direct_42.meta.json", "claude/agents/reviewer.md"} {
		data, err := os.ReadFile(sample(name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}

	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		for _, rel := range []string{"cron/jobs.json", "agents/main/sessions/sessions.json", "agents/main/sessions/x.jsonl",
			"sessions/x.jsonl",
			"sessions/x.meta.json", "agents/a.md", "commands/a.md", "HEARTBEAT.md", "memory/a.md", "skills/a/SKILL.md", "SOUL.md",
			"CLAUDE.md"} {
			write(t, filepath.Join(dir, rel), string(data))
		}

		for _, k := range kinds {
			h, err := openHome(dir)
			if err != nil {
				t.Fatal(err)
			}
			k.read(h)
			h.close()

			for _, i := range h.items {
				if (i.put == nil) == (i.skip == "") {
					t.Errorf("%+v is neither taken nor refused", i)
				}
			}
		}
	})
}

// matches reports whether a text has a line that fits an expression.
func matches(text, expression string) bool { return regexp.MustCompile(expression).MatchString(text) }
