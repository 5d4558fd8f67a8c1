package files

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"daycare/engine/attacktest"
	"daycare/engine/permission"
	"daycare/tools"
)

const secret = "TOP-SECRET"

// escapes are the ways out that have been thought of: what is prepared in the
// workspace, and the path that the agent then asks for.
func escapes(w *world) map[string]func() string {
	out := filepath.Join(w.outside, "secret")
	link := func(target, name, asked string) func() string {
		return func() string { w.link(target, name); return asked }
	}
	static := func(path string) func() string { return func() string { return path } }
	return map[string]func() string{
		"dotdot":               static("../outside/secret"),
		"dotdot deep":          static("a/b/../../../outside/secret"),
		"dotdot hidden":        static("./a/./../../outside//secret"),
		"absolute":             static(out),
		"absolute dotdot":      static(w.ws + "/../outside/secret"),
		"prefix":               static(w.ws + "/../wsx/secret"),
		"proc root":            static("/proc/self/root" + out),
		"proc cwd":             static("/proc/self/cwd/../secret"),
		"device":               static("/dev/stdin"),
		"link to file":         link(out, "l1", "l1"),
		"relative link":        link("../outside/secret", "l2", "l2"),
		"link to folder":       link(w.outside, "l3", "l3/secret"),
		"relative folder":      link("../outside", "l4", "l4/secret"),
		"link to parent":       link("..", "l5", "l5/outside/secret"),
		"link to root":         link("/", "l6", "l6"+out),
		"link then up":         link(w.outside, "l7", "l7/../../outside/secret"),
		"link to proc":         link("/proc/self/root", "l8", "l8"+out),
		"chain":                func() string { w.link("c2", "c1"); w.link("c3", "c2"); w.link(out, "c3"); return "c1" },
		"link in link":         func() string { w.link("d2/secret", "d1"); w.link(w.outside, "d2"); return "d1" },
		"loop":                 func() string { w.link("e2", "e1"); w.link("e1", "e2"); return "e1" },
		"daycare":              static(".daycare/auth.json"),
		"daycare upper case":   static(".DayCare/auth.json"),
		"daycare absolute":     static(w.ws + "/.daycare/auth.json"),
		"daycare by dots":      static(".daycare/files/../auth.json"),
		"daycare by link":      link(".daycare", "f1", "f1/auth.json"),
		"daycare by deep link": link(".daycare/agents", "f2", "f2/other/history.jsonl"),
		"daycare by link in skills": func() string {
			must(w.t, os.Symlink("../auth.json", w.ws+"/.daycare/skills/s"))
			return ".daycare/skills/s"
		},
		"other agent's blobs":        static(".daycare/agents/other/blobs/x"),
		"own history":                static(".daycare/agents/" + agent + "/history.jsonl"),
		"own blobs up":               static(".daycare/agents/" + agent + "/blobs/../history.jsonl"),
		"daycare elsewhere":          static("sub/.daycare/auth.json"),
		"git hooks":                  static(".git/hooks/pre-commit"),
		"git config":                 static(".git/config"),
		"git config upper case":      static(".GIT/CONFIG"),
		"git of module":              static(".git/modules/m/hooks/post-checkout"),
		"git by link":                link(".git", "g1", "g1/config"),
		"git hooks by link":          link(".git/hooks", "g2", "g2/pre-commit"),
		"nested git":                 static("sub/.git/hooks/pre-commit"),
		"ssh":                        static(w.home + "/.ssh/id_ed25519"),
		"ssh by tilde":               static("~/.ssh/id_ed25519"),
		"ssh by link":                link(w.home, "h1", "h1/.ssh/id_ed25519"),
		"ssh by link to it":          link(w.home+"/.ssh", "h2", "h2/id_ed25519"),
		"shell start file":           static("~/.bashrc"),
		"shell start file not there": static("~/.zshenv"),
		"shell start file by case":   static("~/.ZSHENV"),
		"fish":                       static("~/.config/fish/config.fish"),
		"zero byte":                  static("a\x00/../../outside/secret"),
		"empty":                      static(""),
		"pipe":                       func() string { must(w.t, syscall.Mkfifo(w.ws+"/pipe", 0o600)); return "pipe" },
		"pipe by link":               func() string { must(w.t, syscall.Mkfifo(w.ws+"/pipe2", 0o600)); w.link("pipe2", "p2"); return "p2" },
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fill puts secrets wherever an agent must not get.
func (w *world) fill() []string {
	var paths []string
	for _, path := range []string{w.outside + "/secret", w.outside + "/../wsx/secret", ".daycare/auth.json",
		".daycare/agents/other/history.jsonl",
		".daycare/agents/other/blobs/x", ".daycare/agents/" + agent + "/history.jsonl", "sub/.daycare/auth.json", ".git/hooks/pre-commit",
		".git/config", ".git/modules/m/hooks/post-checkout", "sub/.git/hooks/pre-commit", w.home + "/.ssh/id_ed25519",
		w.home + "/.bashrc"} {
		paths = append(paths, w.file(path, secret))
	}
	must(w.t, os.MkdirAll(w.ws+"/.daycare/skills", 0o755))
	must(w.t, os.MkdirAll(w.ws+"/.daycare/agents/"+agent+"/blobs", 0o755))
	must(w.t, os.MkdirAll(w.ws+"/.daycare/files", 0o755))

	return paths
}

func TestWritesThroughHardLinksAreRefused(t *testing.T) {
	w := newWorld(t)
	target := w.file(w.outside+"/secret", secret)
	must(t, os.Link(target, w.ws+"/hard"))
	w.want(w.call("write", a{"path": "hard", "content": "owned"}), tools.Denied, "several names")
	w.want(w.call("edit", a{"path": "hard", "old": "TOP", "new": "owned"}), tools.Denied)

	// A denied file is denied under any name.
	must(t, os.Link(w.file(w.home+"/.bashrc", secret), w.ws+"/rc"))
	w.want(w.call("read", a{"path": "rc"}), tools.Denied, "never open")
	if res := w.call("grep", a{"pattern": "."}); strings.Contains(res.Text, "rc:") {
		t.Errorf("grep reads a denied file: %s", res.Text)
	}
	attacktest.AsUser(t)
}

func TestRefusalsNameTheTag(t *testing.T) {
	w := newWorld(t)
	w.file(w.outside+"/f", "x")
	w.want(w.call("read", a{"path": "../outside/f"}), tools.Denied, "request_permission for @read:"+w.outside+"/f")
	w.want(w.call("write", a{"path": w.outside + "/new", "content": ""}), tools.Denied, "@write:"+w.outside+"/new")
	must(t, os.Symlink("f", w.outside+"/alias"))
	w.want(w.call("read", a{"path": w.outside + "/alias"}), tools.Denied, "@read:"+w.outside+"/alias") // not where it leads

	for _, tag := range []string{"@read:" + w.outside + "/f", "@write:" + w.outside + "/new"} {
		set, err := w.access.Grant(permission.Grant{Tag: tag})
		must(t, err)
		w.access = set
	}
	w.want(w.call("read", a{"path": w.outside + "/f"}), tools.OK, "1\tx")
	w.want(w.call("write", a{"path": w.outside + "/new", "content": "y"}), tools.OK)
	w.want(w.call("write", a{"path": w.outside + "/f", "content": "y"}), tools.Denied, "@write:")
	w.file(w.outside+"/g", "x")
	w.want(w.call("read", a{"path": w.outside + "/g"}), tools.Denied, "@read:")
	w.want(w.call("ls", a{"path": w.outside}), tools.Denied, "@read:")
}

func TestWhatIsOpen(t *testing.T) {
	w := newWorld(t)
	w.fill()
	w.file(".daycare/files/id__a.txt", "attached")
	w.file(".daycare/skills/s/SKILL.md", "skill")
	w.file(".daycare/agents/"+agent+"/blobs/abc", "output")
	task := filepath.Dir(w.file(".daycare/cron/job/files/n.txt", "note"))
	w.tools = map[string]tools.Tool{}
	attached := func(id, name string) bool { return id == agent && name == "id__a.txt" }
	for _, tool := range New(Options{Data: w.ws + "/.daycare", Home: w.home,
		TaskDir: func(string) string { return task }, Attached: attached}) {
		w.tools[tool.Spec().Name] = tool
	}

	w.access = permission.Default(w.ws + "/sub") // attachments can be read from any working folder
	for path, want := range map[string]string{"files/id__a.txt": "attached", "skills/s/SKILL.md": "skill",
		"agents/" + agent + "/blobs/abc": "output", "cron/job/files/n.txt": "note"} {
		w.want(w.call("read", a{"path": w.ws + "/.daycare/" + path}), tools.OK, want)
	}
	w.want(w.call("write", a{"path": w.ws + "/.daycare/files/id__a.txt", "content": "x"}), tools.Denied)
	w.want(w.call("write", a{"path": w.ws + "/.daycare/agents/" + agent + "/blobs/abc", "content": "x"}), tools.Denied)
	w.want(w.call("write", a{"path": task + "/new/n.txt", "content": "x"}), tools.OK)
	w.want(w.call("write", a{"path": task + "/../TASK.md", "content": "x"}), tools.Denied)
	w.want(w.call("ls", a{"path": w.ws + "/.daycare/skills"}), tools.OK, "s/")
	must(t, os.Rename(task, task+"~"))
	w.file(task, "a file in its place")
	w.want(w.call("read", a{"path": task + "/n.txt"}), tools.Failed, "not a directory")

	// Links inside the workspace work, absolute ones too.
	w.access = permission.Default(w.ws)
	w.file("real/x.txt", "x")
	w.link("real", "rel")
	w.link(w.ws+"/real", "abs")
	w.want(w.call("read", a{"path": "rel/x.txt"}), tools.OK, "1\tx")
	w.want(w.call("write", a{"path": "abs/x.txt", "content": "y"}), tools.OK)
	if w.content("real/x.txt") != "y" {
		t.Error("a write through a link inside the workspace did not reach the file")
	}
}

// An agent reads the attachments of its own conversation, by their names, and neither those of
// other users nor the list of them.
func TestAttachmentsOfOthersAreOutOfReach(t *testing.T) {
	w := newWorld(t)
	w.file(".daycare/files/mine__a.txt", "attached")
	for _, path := range []string{"files/other__b.txt", "files/other.json", "files/mine.json", "files/sub/mine__a.txt"} {
		w.file(".daycare/"+path, secret)
	}
	must(t, os.Symlink("other__b.txt", w.ws+"/.daycare/files/link__a.txt"))
	o := Options{Data: w.ws + "/.daycare", Home: w.home, Attached: func(id, name string) bool {
		return id == agent && (name == "mine__a.txt" || name == "link__a.txt")
	}}
	for _, tool := range append(New(o), NewSend(o, nil)) {
		w.tools[tool.Spec().Name] = tool
	}

	w.want(w.call("read", a{"path": ".daycare/files/mine__a.txt"}), tools.OK, "attached")
	w.link(".daycare/files", "l")
	for _, path := range []string{".daycare/files", ".daycare/files/other__b.txt", ".daycare/files/other.json",
		".daycare/files/mine.json", ".daycare/files/sub/mine__a.txt",
		".daycare/files/link__a.txt", ".daycare/files/mine__a.txt/../other__b.txt", "l", "l/other__b.txt", ".DAYCARE/files/other__b.txt"} {
		for _, tool := range []string{"read", "ls", "grep", "glob", "send_file"} {
			res := w.call(tool, a{"path": path, "pattern": "S*"})
			if strings.Contains(res.Text, secret) || strings.Contains(res.Text, "other__b.txt:") ||
				strings.Contains(res.Text, "other__b.txt  ") || res.Status != tools.Denied {
				t.Errorf("%s %s: %s %s", tool, path, res.Status, res.Text)
			}
		}
	}

	w.want(w.call("write", a{"path": ".daycare/files/mine__a.txt", "content": "x"}), tools.Denied)
	attacktest.AsUser(t)
}

// The workspace itself may be reached through a link, as /tmp is on macOS.
func TestWorkspaceBehindALink(t *testing.T) {
	w := newWorld(t)
	w.fill()
	w.file("x.txt", "x")
	alias := filepath.Join(filepath.Dir(w.ws), "alias")
	must(t, os.Symlink(w.ws, alias))
	w.access = permission.Default(alias)
	w.want(w.call("read", a{"path": "x.txt"}), tools.OK, "1\tx")
	if need, run := w.unasked("read", a{"path": "x.txt"}); need != nil {
		t.Errorf("a file of the workspace asks for %+v", need)
	} else {
		w.want(run(), tools.OK, "1\tx")
	}
	w.want(w.call("read", a{"path": alias + "/.daycare/auth.json"}), tools.Denied)
	for _, tool := range New(Options{Data: filepath.Join(w.ws, ".daycare"), Home: w.home, Folders: w.folders,
		Denied: []string{filepath.Join(w.ws, "private")}}) {
		w.tools[tool.Spec().Name] = tool
	}
	for _, path := range []string{"private", "private/x", "private/deep/x"} {
		w.want(w.call("write", a{"path": path, "content": "x"}), tools.Denied, "never open")
	}
	w.access = permission.Set{WorkingDir: alias + "/.daycare"}
	w.want(w.call("read", a{"path": "auth.json"}), tools.Denied)
	must(t, os.Symlink(w.ws+"/.daycare", filepath.Join(filepath.Dir(w.ws), "data")))
	w.access = permission.Set{WorkingDir: filepath.Join(filepath.Dir(w.ws), "data", "agents")}
	w.want(w.call("read", a{"path": "other/history.jsonl"}), tools.Denied)
}

// Someone swaps a folder, or a file, for a link to the secret and back as fast as
// they can, while all tools go for it. DAYCARE_LONG=1 makes it a minute each.
func TestSymlinkSwapper(t *testing.T) {
	runFor := time.Second
	if os.Getenv("DAYCARE_LONG") != "" {
		runFor = time.Minute
	}
	if testing.Short() {
		runFor = min(runFor, 200*time.Millisecond)
	}

	t.Run("folder", func(t *testing.T) {
		w := newWorld(t)
		w.link(w.outside, "l")
		swapper(w, filepath.Join(w.ws, "d"), filepath.Join(w.ws, "l"), runFor)
	})
	t.Run("file", func(t *testing.T) {
		w := newWorld(t)
		w.link(w.outside+"/f.txt", "l")
		w.file("d/f.txt", "harmless\n")
		swapper(w, filepath.Join(w.ws, "d", "f.txt"), filepath.Join(w.ws, "l"), runFor)
	})
}

func swapper(w *world, real, link string, runFor time.Duration) {
	t := w.t
	w.fill()
	w.file(w.outside+"/f.txt", secret)
	w.file("d/f.txt", "harmless\n")
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !stop.Load() {
			exchange(real, link)
		}
	})

	seen, tries, changes := map[tools.Status]int{}, 0, 0
	for end := time.Now().Add(runFor); time.Now().Before(end); {
		calls := map[string]a{"read": {"path": "d/f.txt"}, "grep": {"path": "d", "pattern": "."}, "ls": {"path": "d"},
			"glob": {"pattern": "d/*"}}
		if tries >= changes { // now and then: these wait for the disk
			changes = tries + 50
			calls["write"] = a{"path": "d/f.txt", "content": "harmless too\n"}
			calls["edit"] = a{"path": "d/f.txt", "old": "harmless", "new": "harmless!"}
		}

		for tool, args := range calls {
			tries++
			res := w.call(tool, args)
			seen[res.Status]++

			// A link may be listed with its target; what is behind it may not.
			if text := strings.ReplaceAll(res.Text, "-> "+w.outside+"/f.txt", ""); strings.Contains(text, secret) ||
				strings.Contains(text, "secret") {
				t.Fatalf("%s got out: %s", tool, res.Text)
			}
		}
	}

	stop.Store(true)
	wg.Wait()
	t.Logf("%d tries: %v", tries, seen)
	if data, _ := os.ReadFile(w.outside + "/f.txt"); string(data) != secret {
		t.Errorf("the file outside was changed: %q", data)
	}
	if entries, _ := os.ReadDir(w.outside); len(entries) != 2 {
		t.Errorf("something was left outside: %v", entries)
	}
}

func FuzzPaths(f *testing.F) {
	for _, path := range []string{"a", "../x", "/etc/passwd", "l/../..", "l/x", "./.daycare/x", "~/.ssh", "a\x00b"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		w := newWorld(t)
		w.fill()
		w.link(w.outside, "l")
		w.link("..", "u")

		for _, tool := range []string{"read", "ls", "grep"} {
			if res := w.call(tool, a{"path": path, "pattern": "."}); strings.Contains(res.Text, secret) {
				t.Fatalf("%s %q gave the secret", tool, path)
			}
		}
		w.call("write", a{"path": path, "content": "owned"})

		for _, s := range []string{w.outside + "/secret", w.ws + "/.daycare/auth.json", w.ws + "/.git/config"} {
			if w.content(s) != secret {
				t.Fatalf("write %q changed %s", path, s)
			}
		}
	})
}
