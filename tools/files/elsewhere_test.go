package files

import (
	"path/filepath"
	"strings"
	"testing"

	"daycare/engine/permission"
	"daycare/engine/workspace"
	"daycare/tools"
)

// Daycare's own files are out of reach under any name and wherever they are, also in a folder that was granted; what
// is the agent's own in them is not.
func TestADataFolderElsewhereIsClosed(t *testing.T) {
	w := newWorld(t)
	own := filepath.Join(w.outside, "own")
	at := workspace.Place{Dir: w.ws, Data: own}
	w.file(own+"/auth.json", "canary")
	w.file(own+"/"+workspace.FileName, string(at.Record()))
	w.file(own+"/skills/s/SKILL.md", "a skill")
	task := filepath.Dir(w.file(own+"/cron/job/files/n.txt", "note"))
	w.file(w.outside+"/open.txt", "open")
	w.file("AGENTS.md", "rules")
	w.tools = map[string]tools.Tool{}
	for _, tool := range New(Options{Data: own, Home: w.home, Folders: w.folders, TaskDir: func(string) string { return task }}) {
		w.tools[tool.Spec().Name] = tool
	}
	w.link(own, "link")
	w.link(w.outside, "around")
	w.access = permission.Default(w.ws)
	w.access.ReadDirs, w.access.WriteDirs = []string{w.outside, own}, []string{w.outside, own}

	w.want(w.call("read", a{"path": w.outside + "/open.txt"}), tools.OK, "open")
	for _, path := range []string{own + "/auth.json", own + "/../own/auth.json", w.ws + "/link/auth.json", w.ws + "/around/own/auth.json"} {
		w.want(w.call("read", a{"path": path}), tools.Denied)
		w.want(w.call("write", a{"path": path, "content": "x"}), tools.Denied)
	}
	w.want(w.call("ls", a{"path": own}), tools.Denied)
	w.want(w.call("write", a{"path": own + "/drop/new.md", "content": "x"}), tools.Denied)
	for name, pattern := range map[string]string{"grep": "canary", "glob": "**/auth.json"} {
		if res := w.call(name, a{"pattern": pattern, "path": w.outside}); strings.Contains(res.Text, "auth.json") {
			t.Errorf("%s finds %q", name, res.Text)
		}
	}

	w.want(w.call("read", a{"path": own + "/skills/s/SKILL.md"}), tools.OK, "a skill")
	w.want(w.call("write", a{"path": task + "/n.txt", "content": "x"}), tools.OK)
	if b := newBase(Options{Data: own}); b.workspace != w.ws || !b.Folders.Writable(filepath.Join(w.ws, "x")) {
		t.Errorf("the workspace is %q", b.workspace)
	}
	if got := w.content(own + "/auth.json"); got != "canary" {
		t.Errorf("it has %q", got)
	}
}
