//go:build !race

package shell

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Compilers do the work here: the race detector has nothing to find. .ci/run runs this without it.

// builds are what users have agents do all day, without a network.
var builds = map[string]struct {
	needs string // the program
	files map[string]string
	run   string
	shows string
}{
	"go": {"go", map[string]string{"go.mod": "module hello\n\ngo 1.21\n",
		"main.go": "package main\n\nfunc main() { println(\"built\") }\n"},
		"go build -o hello . && ./hello && git add -A && git commit -qm built && git status --short", "built"},
	"npm": {"npm", map[string]string{"package.json": `{"name":"hello","version":"1.0.0","dependencies":{"dep":"file:./dep"},` +
		`"scripts":{"build":"node -e \"require('fs').writeFileSync('out','built')\""}}`,
		"dep/package.json": `{"name":"dep","version":"1.0.0"}`},
		"npm install --offline --no-audit --no-fund && npm run build && cat out", "built"},
	"pip": {"/usr/bin/python3", map[string]string{"pyproject.toml": "[project]\nname = \"hello\"\nversion = \"1\"\n",
		"hello.py": "print('built')\n"},
		"/usr/bin/python3 -m venv --without-pip venv && . venv/bin/activate && python hello.py", "built"},
	"make": {"make", map[string]string{"Makefile": "all: out\n\tcat out\nout: in\n\ttr a-z A-Z < in > out && chmod +x out\n",
		"in": "built"}, "make && test -x out", "BUILT"},
	"c": {"gcc", map[string]string{"a.c": "#include <stdio.h>\nint main() { puts(\"built\"); }\n"}, "gcc -o a a.c && ./a", "built"},
}

// TestBuildsNeedNoApproval: what needs no network is done in the sandbox without a
// question, and nothing of it is put aside.
func TestBuildsNeedNoApproval(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("compilers take their time")
	}
	home := t.TempDir() // one for both, as compilers keep what they made
	for name, build := range builds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(build.needs); err != nil {
				t.Skipf("SKIPPED, NOTHING IS PROVED: there is no %s", build.needs)
			}

			for _, level := range sandboxed {
				runner, err := probed[level]()
				if err != nil || !runner.HasView() {
					continue // new files at the top of a repository are what it cannot do
				}
				x := newWorld(t, level)
				x.repository()
				x.exec.jobs.yieldAfter = time.Hour // compilers have a lot to do on a slow machine
				x.exec.confine.options.Home = func(string) string { return home }
				project := filepath.Join(x.w, "project")
				for path, text := range build.files {
					path = filepath.Join(project, path)
					if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
						t.Fatal(err)
					}
				}

				env := map[string]string{"GIT_AUTHOR_NAME": "x", "GIT_AUTHOR_EMAIL": "x@example.com",
					"GIT_COMMITTER_NAME": "x", "GIT_COMMITTER_EMAIL": "x@example.com"}
				call := newCall(t, x.access, a{"command": build.run, "env": env, "workdir": project, "timeoutMs": 180_000})
				if need, err := x.exec.Needs(call); need != nil || err != nil {
					t.Errorf("it needs %+v %v", need, err)
				}

				res := run(t, t.Context(), x.exec, call)
				if res.Status != "" || !strings.Contains(res.Text, build.shows) || strings.Contains(res.Text, "put aside") {
					t.Errorf("%+v", res)
				}
				t.Logf("%s: 0 approvals", level)
			}
		})
	}
}
