package cluster

import (
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/address"
	"daycare/engine/cluster/clustertest"
	"daycare/engine/cuid"
	"daycare/engine/disk"
)

// workspaceWith is a folder of daycare's with these files.
func workspaceWith(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}

	return root
}

// newcomer is an agent to be imported, with one file.
func newcomer(handle string, d address.Descriptor, history string) Newcomer {
	return Newcomer{Meta: address.Meta{ID: d.ID, Handle: handle, Name: d.Name, Descriptor: d},
		Files: func() (map[string][]byte, error) { return map[string][]byte{"history.jsonl": []byte(history)}, nil }}
}

// An import brings agents with their handles where these are free, under the next number where they are not, and leaves out
// what cannot come. Done again, it brings nothing twice.
func TestImport(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	file, other := cuid.New(), cuid.New()
	root := workspaceWith(t, map[string]string{
		"files/" + file + ".json":      `{"name":"a.txt"}`,
		"files/" + file + "__a.txt":    "attached",
		"files/" + other + ".json":     `{"name":"gone.txt"}`, // someone removed the content
		"files/notes.json":             `{}`,                  // no reference
		"SOUL.md":                      "be kind",
		"cron/daily/runs.jsonl":        "one\n",
		"cron/daily/files/private.txt": "not of all machines",
	})
	bring := func(agents ...Newcomer) (list []Arrival, done Imported) {
		t.Helper()
		done, err := Import(t.Context(), Config{Servers: []string{s.ClientURL()}, Root: root, Shared: sharedByTests,
			Log: slog.New(slog.DiscardHandler)}, Load{Agents: agents, Arrived: func(a Arrival) { list = append(list, a) }})
		if err != nil {
			t.Fatal(err)
		}
		return list, done
	}
	user := func(id, channel string) address.Descriptor {
		return address.Descriptor{Type: address.User, ID: id, Connector: "c", ChannelID: channel}
	}
	ids := []string{cuid.New(), cuid.New(), cuid.New(), cuid.New(), cuid.New(), cuid.New()}
	first := newcomer("0/", user(ids[0], "room"), "hello\n")
	first.Open = true
	child := newcomer("0/3", address.Descriptor{Type: address.Subagent, ID: ids[1], ParentAgentID: ids[0]}, "child\n")
	orphan := newcomer("7/1", address.Descriptor{Type: address.Subagent, ID: ids[2], ParentAgentID: cuid.New()}, "orphan\n")

	list, done := bring(first, child, orphan)
	if diff := cmp.Diff([]Arrival{
		{Meta: first.Meta, Was: "0/"}, {Meta: child.Meta, Was: "0/3"},
		{Meta: orphan.Meta, Was: "7/1", Kept: "the agent that it belongs to is not in the cluster"},
	}, list); diff != "" {
		t.Errorf("the first import (-want +got):\n%s", diff)
	}
	if done.Attachments != 1 || done.Files != 2 || len(done.Kept) != 0 {
		t.Errorf("beside the agents %+v came, want an attachment and two files", done)
	}

	rival := newcomer("0/", user(ids[3], "room"), "rival\n")   // the same chat, in another workspace
	second := newcomer("0/", user(ids[4], "hall"), "second\n") // another chat under the same handle
	ended := newcomer("0/3", child.Descriptor, "never read\n") // as the child, but it ended
	ended.ID, ended.Descriptor.ID, ended.Ended = ids[5], ids[5], true
	list, done = bring(first, rival, second, ended)
	there := Arrival{Meta: first.Meta, Was: "0/", There: true, Kept: "the cluster already has it"}
	as := Arrival{Meta: second.Meta, Was: "0/"}
	as.Handle = "1/"
	last := Arrival{Meta: ended.Meta, Was: "0/3"}
	last.Handle = "0/4"
	if diff := cmp.Diff([]Arrival{there, {Meta: rival.Meta, Was: "0/", Kept: "agent 0/ has its address"}, as, last}, list); diff != "" {
		t.Errorf("the second import (-want +got):\n%s", diff)
	}
	if done.Attachments != 0 || done.Files != 0 || len(done.Kept) != 0 {
		t.Errorf("beside the agents %+v came again", done)
	}

	m := newHost(t, s)
	m.own(ids[0])
	if got := m.lines(ids[0], "history.jsonl"); !slices.Equal(got, []string{"hello"}) {
		t.Errorf("the log has %q", got)
	}
	all := m.Agents()
	if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, slices.Sorted(slices.Values([]string{ids[0], ids[1], ids[4], ids[5]}))) {
		t.Errorf("the cluster knows %q", got)
	}
	if all[ids[1]].Ended || !all[ids[5]].Ended {
		t.Errorf("ended are %v and %v, want the second alone", all[ids[1]].Ended, all[ids[5]].Ended)
	}
	out := t.TempDir()
	if _, err := Export(t.Context(), Config{Servers: []string{s.ClientURL()}, Root: out, Volume: disk.NewVolume(out), Covers: covered,
		Shared: sharedByTests, Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"files/" + file + "__a.txt": "attached", "SOUL.md": "be kind", "cron/daily/runs.jsonl": "one\n",
	} {
		if data, err := os.ReadFile(filepath.Join(out, name)); string(data) != want {
			t.Errorf("%s has %q (%v), want %q", name, data, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(out, "cron/daily/files")); err == nil {
		t.Error("files came that are not of all machines")
	}
}

// Of what belongs to all machines, a ledger gets the lines of both, and another file stays as the cluster has it.
func TestImportOfSharedFilesThatDiffer(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	bring := func(files map[string]string) Imported {
		t.Helper()
		done, err := Import(t.Context(), Config{Servers: []string{s.ClientURL()}, Root: workspaceWith(t, files), Shared: sharedByTests,
			Log: slog.New(slog.DiscardHandler)}, Load{})
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	bring(map[string]string{"SOUL.md": "be kind", "cron/daily/runs.jsonl": "one\ntwo\n", "memory/a.md": "a"})
	done := bring(map[string]string{"SOUL.md": "be brief", "cron/daily/runs.jsonl": "two\nthree\n", "memory/a.md": "a", "memory/b.md": "b"})
	if diff := cmp.Diff(Imported{Files: 2, Kept: []string{"SOUL.md"}}, done); diff != "" {
		t.Errorf("the second import (-want +got):\n%s", diff)
	}
	if again := bring(map[string]string{"cron/daily/runs.jsonl": "two\n"}); again.Files != 0 {
		t.Errorf("lines that are there came again: %+v", again)
	}

	m := newHost(t, s)
	defer m.tend()()
	until(t, "the machine has the files", func() bool { return m.has("memory/b.md") == "b" && m.has("cron/daily/runs.jsonl") != "" })
	if got := m.has("SOUL.md"); got != "be kind" {
		t.Errorf("SOUL.md has %q", got)
	}
	got := strings.Fields(m.has("cron/daily/runs.jsonl"))
	if slices.Sort(got); !slices.Equal(got, []string{"one", "three", "two"}) {
		t.Errorf("the ledger has %q", got)
	}
}

// What cannot be read ends an import, with the name of what it was.
func TestImportOfWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	file := cuid.New()
	agent := newcomer("0/", address.Descriptor{Type: address.Permanent, ID: cuid.New()}, "")
	agent.Files = func() (map[string][]byte, error) { return nil, errors.New("torn") }
	for name, tt := range map[string]struct {
		files map[string]string
		load  Load
		want  string
	}{
		"an agent":                     {nil, Load{Agents: []Newcomer{agent}, Arrived: func(Arrival) {}}, "import agent 0/: torn"},
		"a reference that is not JSON": {map[string]string{"files/" + file + ".json": "{"}, Load{}, "read attachment " + file},
		"a name out of the folder":     {map[string]string{"files/" + file + ".json": `{"name":"../x"}`}, Load{}, `its name is "../x"`},
		"a folder as a reference":      {map[string]string{"files/" + file + ".json/x": ""}, Load{}, "read attachment " + file},
		"a folder as content": {map[string]string{"files/" + file + ".json": `{"name":"a"}`, "files/" + file + "__a/x": ""}, Load{},
			"import attachment " + file},
	} {
		_, err := Import(t.Context(), Config{Servers: []string{s.ClientURL()}, Root: workspaceWith(t, tt.files), Shared: sharedByTests,
			Log: slog.New(slog.DiscardHandler)}, tt.load)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
