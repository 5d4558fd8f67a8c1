//go:build !race

package shell

import (
	"encoding/base64"
	"encoding/hex"
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
	flags := seedGo(t, home)
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
					"GIT_COMMITTER_NAME": "x", "GIT_COMMITTER_EMAIL": "x@example.com", "GOFLAGS": flags}
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

// seedGo puts Go's runtime into the cache of a home as it is compiled already for the flags that it returns: to compile it
// anew would take nearly all of a build. What the cache has no name for is compiled there.
func seedGo(t *testing.T, home string) (flags string) {
	t.Helper()
	env, err := exec.Command("go", "env", "GOCACHE", "GOFLAGS").Output()
	if err != nil {
		return "" // the build is skipped
	}
	from, flags, _ := strings.Cut(strings.TrimSuffix(string(env), "\n"), "\n")
	list, err := exec.Command("go", "list", "-export", "-deps", "-f", "{{.BuildID}} {{.Export}}", "runtime").Output()
	if err != nil {
		t.Fatal(err)
	}

	for line := range strings.Lines(string(list)) {
		// An id begins with that of what was done, in part; the entry of that in the cache names the result.
		id, result, _ := strings.Cut(strings.TrimSpace(line), " ")
		action, _, _ := strings.Cut(id, "/")
		name, err := base64.RawURLEncoding.DecodeString(action)
		if err != nil || len(name) == 0 {
			continue
		}
		entries, _ := filepath.Glob(filepath.Join(from, hex.EncodeToString(name[:1]), hex.EncodeToString(name)+"*-a"))
		for _, path := range append(entries, result) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			write(t, map[string]string{filepath.Join(home, ".cache", "go-build", strings.TrimPrefix(path, from)): string(data)})
		}
	}

	return flags
}
