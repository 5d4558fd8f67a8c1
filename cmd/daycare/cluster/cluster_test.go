package cluster

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/cmd/daycare/commandtest"
	"daycare/cmd/daycare/peers"
	"daycare/engine/address"
	"daycare/engine/cluster"
	"daycare/engine/cluster/clustertest"
	"daycare/engine/cuid"
	"daycare/engine/disk"
	"daycare/engine/folders"
	"daycare/engine/workspace"
)

// A natsServer keeps what machines share.
type natsServer interface {
	ClientURL() string
	Addr() net.Addr
	Shutdown()
	WaitForShutdown()
}

// A ward is a shell, and servers that it names.
type ward struct {
	*commandtest.Shell
	t     *testing.T
	store string
	s     natsServer
}

func newWard(t *testing.T) *ward {
	w := &ward{t: t, store: t.TempDir()}
	w.s = clustertest.Serve(t, w.store, 0)
	w.Shell = commandtest.NewShell(t, commandtest.NewHouse(t, nil), "", Command)
	return w
}

// do runs a command of cluster, and decodes its answer.
func (w *ward) do(code int, to any, args ...string) {
	w.t.Helper()
	if got := w.Do(append([]string{"cluster", "--json", "--join", w.s.ClientURL()}, args...)...); got != code {
		w.t.Fatalf("%q: exit code %d, want %d\n%s%s", args, got, code, &w.Stdout, &w.Stderr)
	}
	if err := json.Unmarshal(w.Stdout.Bytes(), to); err != nil {
		w.t.Fatalf("%q: %v\n%s", args, err, &w.Stdout)
	}
}

// machine joins the cluster with a new folder.
func (w *ward) machine() (n *cluster.Node, home string) {
	w.t.Helper()
	home = filepath.Join(w.t.TempDir(), workspace.Home)
	if err := os.MkdirAll(filepath.Join(home, "agents"), 0o700); err != nil {
		w.t.Fatal(err)
	}
	n, err := cluster.Join(w.t.Context(), cluster.Config{Servers: []string{w.s.ClientURL()}, Name: "m", Root: home,
		Volume: disk.NewVolume(home), Covers: folders.Replicated, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(n.Close)

	return n, home
}

// own acquires an agent.
func (w *ward) own(n *cluster.Node, agent string) {
	w.t.Helper()
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = n.Acquire(agent); err == nil {
			return
		}
	}
	w.t.Fatal(err)
}

func (w *ward) write(path, text string) {
	w.t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// alone is a workspace with a parent, its child, and an agent of a chat; each has a state and a history.
func (w *ward) alone() (folder string, ids []string) {
	w.t.Helper()
	folder = w.t.TempDir()
	home := filepath.Join(folder, workspace.Home)
	vol := disk.NewVolume(home)
	if err := os.MkdirAll(home, 0o700); err != nil {
		w.t.Fatal(err)
	}
	index, _, err := address.Load(vol, home, slog.New(slog.DiscardHandler))
	if err != nil {
		w.t.Fatal(err)
	}
	for i, d := range []address.Descriptor{
		{Type: address.User, Connector: "terminal", ChannelID: "main", UserID: "u", Name: "parent"},
		{Type: address.Permanent, Name: "child"},
		{Type: address.User, Connector: "chat", ChannelID: "c", UserID: "u"}} {
		if d.Name == "child" {
			d.ParentAgentID, d.ID = ids[0], cuid.New()
		}
		state := fmt.Sprintf(`{ "permissions": { "workingDir": %q } }`, folder)
		m, err := index.Create(d, []byte(state+"\n"))
		if err != nil {
			w.t.Fatal(err)
		}
		w.write(filepath.Join(home, "agents", m.ID, "history.jsonl"), fmt.Sprintf("history %d\n", i))
		ids = append(ids, m.ID)
	}
	if err := index.Close(); err != nil {
		w.t.Fatal(err)
	}
	w.write(filepath.Join(home, "memory", "one.md"), "tea")
	w.write(filepath.Join(home, "memory", "two.md"), "coffee")
	w.write(filepath.Join(home, "files", "aaaaaaaaaaaaaaaaaaaaaaaa.json"), `{"id":"aaaaaaaaaaaaaaaaaaaaaaaa","name":"a.txt"}`)
	w.write(filepath.Join(home, "files", "aaaaaaaaaaaaaaaaaaaaaaaa__a.txt"), "content")

	return folder, ids
}

// all are the files of a folder with their contents.
func (w *ward) all(folder string) map[string]string {
	w.t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		files[path] = string(data)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}

	return files
}

// A workspace is brought into a cluster that has agents of its own: what is there stays, all else is there, and what has only
// been moved is exported again as it was. Its folder is not changed. Done again, nothing is brought.
func TestImport(t *testing.T) {
	w := newWard(t)
	first, firstIDs := w.alone()
	second, ids := w.alone()
	w.write(filepath.Join(second, workspace.Home, "memory", "two.md"), "water")
	w.write(filepath.Join(second, workspace.Home, "memory", "three.md"), "juice")
	before := w.all(second)
	var got imported
	w.do(0, &got, "import", first)
	if len(got.Agents) != 3 || got.Files != 2 || got.Attachments != 1 || len(got.Kept) > 0 || got.Agents[1].Handle != "0/0" ||
		got.Agents[1].Kept != "" {
		t.Fatalf("into an empty cluster: %+v", got)
	}

	got = imported{}
	w.do(0, &got, "import", second)
	said := fmt.Sprintf("%+v", got)
	if len(got.Agents) != 3 || !strings.Contains(got.Agents[0].Kept, "agent 0/ has its address") || got.Files != 1 ||
		got.Attachments != 0 || strings.Join(got.Kept, " ") != "memory/two.md" {
		t.Errorf("beside what is there: %s", said)
	}
	if after := w.all(second); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Error("the folder was changed")
	}
	if code := w.Do("cluster", "import", "--join", w.s.ClientURL(), second); code != 0 ||
		!strings.Contains(w.Stderr.String(), "daycare --workspace "+second+" agents export HANDLE | daycare --workspace /") {
		t.Errorf("what to do about those that were not brought: exit code %d, %q", code, w.Stderr.String())
	}
	for range 2 {
		got = imported{}
		w.do(0, &got, "import", first)
		if len(got.Agents) != 3 || got.Files != 0 || got.Attachments != 0 || got.Agents[0].Kept != "the cluster already has it" {
			t.Errorf("once more: %+v", got)
		}
	}

	n, home := w.machine()
	for i, id := range firstIDs {
		w.own(n, id)
		data, err := os.ReadFile(filepath.Join(home, "agents", id, "history.jsonl"))
		if err != nil || string(data) != fmt.Sprintf("history %d\n", i) {
			t.Errorf("history %d is %q, %v", i, data, err)
		}
		state, err := os.ReadFile(filepath.Join(home, "agents", id, "state.json"))
		if err != nil || strings.Contains(string(state), first) {
			t.Errorf("state %d names the folder that it was in, or is missing: %s %v", i, state, err)
		}
	}
	if agents := n.Agents(); len(agents) != 3 || agents[ids[0]].ID != "" {
		t.Errorf("the cluster has %+v", agents)
	}
	out := t.TempDir()
	var copied struct{ Agents int }
	w.do(0, &copied, "export", out)
	data, err := os.ReadFile(filepath.Join(out, workspace.Home, "files", "aaaaaaaaaaaaaaaaaaaaaaaa__a.txt"))
	if copied.Agents != 3 || err != nil || string(data) != "content" {
		t.Errorf("exported %d agents, attachment %q, %v", copied.Agents, data, err)
	}
}

// What is no workspace, is worked on, or is a machine of a cluster is refused.
func TestBadImports(t *testing.T) {
	w := newWard(t)
	machine, _ := w.alone()
	w.write(peers.File(filepath.Join(machine, workspace.Home)), `{"servers":["nats://127.0.0.1:1"]}`)
	busy, _ := w.alone()
	lock, _, err := disk.TryLock(workspace.At(busy).Lock(), disk.Holder{PID: os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	for folder, want := range map[string]string{t.TempDir(): "has no agents", machine: "belongs to a cluster",
		busy: "a daemon works in"} {
		if code := w.Do("cluster", "import", "--join", w.s.ClientURL(), folder); code == 0 || !strings.Contains(w.Stderr.String(), want) {
			t.Errorf("exit code %d, %q, want %q", code, w.Stderr.String(), want)
		}
	}
}

// Servers that lost an agent get it again from the machine that had it; a look changes nothing.
func TestRepairs(t *testing.T) {
	w := newWard(t)
	folder, ids := w.alone()
	var got imported
	w.do(0, &got, "import", folder)
	n, _ := w.machine()
	w.own(n, ids[2])
	n.Release(ids[2], false)
	var list []damage
	if w.do(0, &list, "repair"); len(list) > 0 {
		t.Fatalf("before: %+v", list)
	}

	port := w.s.Addr().(*net.TCPAddr).Port
	w.s.Shutdown()
	w.s.WaitForShutdown()
	if err := os.RemoveAll(w.store); err != nil {
		t.Fatal(err)
	}
	w.s = clustertest.Serve(t, w.store, port)
	for end := time.Now().Add(time.Minute); len(list) != 3 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		list = nil
		if code := w.Do("cluster", "--json", "--join", w.s.ClientURL(), "repair"); code == 1 { // the machine tells who there is
			_ = json.Unmarshal(w.Stdout.Bytes(), &list)
		}
	}
	list = nil
	w.do(1, &list, "repair", "--fix")
	for _, d := range list {
		if lost := d.ID != ids[2]; lost != (d.Error != "") || !lost && (d.From != "m" || d.UpTo < d.Of || d.Kept == "") {
			t.Errorf("repaired %+v", d)
		}
	}
	list = nil
	if w.do(1, &list, "repair"); len(list) != 2 {
		t.Errorf("then %+v", list)
	}
	w.own(n, ids[2])
	code := w.Do("cluster", "repair", "--join", w.s.ClientURL())
	if code != 1 || !strings.Contains(w.Stdout.String(), "no running machine has its folder") {
		t.Errorf("exit code %d\n%s", code, &w.Stdout)
	}
}
