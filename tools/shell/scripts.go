package shell

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"daycare/engine/beneath"
	"daycare/engine/permission"
)

// What a command would run is resolved here, for the user who is asked and for the
// approvals that are bound to it: the program behind each name, and the content of
// every file that is named as a script and that the agent could change meanwhile.

// A resolved command is what the words of a command line lead to.
type resolved struct {
	segments []segment
	plain    bool // the words say all that it does
}

// A segment is one simple command.
type segment struct {
	words   []string
	program string // path; "" for what the shell does itself, or what is not found
	scripts []pinned
}

// pinned is a script and the word that names it.
type pinned struct {
	word int
	permission.Script
}

// runners run what their arguments name: interpreters, and programs that start others.
var runners = []string{"sh", "bash", "dash", "zsh", "ksh", "fish", "python", "python2", "python3", "node", "nodejs", "deno", "bun", "ruby",
	"perl", "php", "lua", "Rscript", "pwsh", "tclsh", "awk", "gawk", "mawk", "sed", "osascript", "java", "env", "nice",
	"nohup", "timeout", "time", "sudo", "doas", "su", "xargs", "exec", "command", "builtin", "eval", "stdbuf", "setsid",
	"ionice", "chrt", "flock",
	"watch", "find", "parallel", "strace", "ltrace", "gdb", "ssh", "chroot", "unshare", "nsenter", "script", "busybox", "source", "."}

// runner reports whether a program runs what its arguments name.
func runner(words []string) bool {
	name := filepath.Base(words[0])
	if name == "go" || name == "make" || name == "gmake" { // those that can name a file to run
		return len(words) > 2 && (words[1] == "run" || words[1] == "-f")
	}

	return slices.Contains(runners, name) || slices.Contains(runners, strings.TrimRight(name, "0123456789."))
}

// resolve says what a command leads to when it starts in dir. set is what the agent may
// change.
func resolve(command, dir string, set permission.Set) resolved {
	return resolveIn(command, dir, set, maxNested)
}

// maxNested is how deep a command in a command (sh -c '…') is looked into.
const maxNested = 3

func resolveIn(command, dir string, set permission.Set, depth int) resolved {
	list, plain := segments(command)
	r := resolved{plain: plain}
	for _, words := range list {
		s := segment{words: words, program: program(words[0], dir)}
		s.scripts = scripts(words, s.program, dir, set)
		if inner := inline(words); inner != "" && depth > 0 {
			nested := resolveIn(inner, dir, set, depth-1)
			for _, n := range nested.segments {
				for _, p := range n.scripts {
					s.scripts = append(s.scripts, pinned{len(words) - 1, p.Script})
				}
			}
		}

		r.segments = append(r.segments, s)
		if words[0] == "cd" && len(words) == 2 { // where those that follow begin
			dir = inside(dir, words[1])
		}
	}

	return r
}

// inline is the command that a shell is given as an argument; "" for none.
func inline(words []string) string {
	if len(words) < 3 || !slices.Contains(runners[:6], filepath.Base(words[0])) {
		return ""
	}
	for i, w := range words[1 : len(words)-1] {
		if strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.HasSuffix(w, "c") {
			return words[i+2]
		}
	}

	return ""
}

func inside(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// program is the file that a name stands for; "" for what the shell does itself, and
// for what is not there.
func program(name, dir string) string {
	if strings.ContainsRune(name, filepath.Separator) {
		return inside(dir, name)
	}
	path, err := exec.LookPath(name)
	if err != nil || !filepath.IsAbs(path) {
		return ""
	}

	return path
}

// scripts are the files among the words of a command that would run and that the agent
// can change: the program, and what a runner is given to run.
func scripts(words []string, program, dir string, set permission.Set) (list []pinned) {
	pin := func(word int, path string) bool {
		path = inside(dir, path)
		info, err := os.Stat(path)
		if err != nil || info.IsDir() || !changeable(path, set) {
			return false
		}

		sum := contentOf(path)
		if !slices.ContainsFunc(list, func(p pinned) bool { return p.Path == path }) {
			list = append(list, pinned{word, permission.Script{Path: path, SHA256: sum}})
		}

		return true
	}
	if program != "" {
		pin(0, program)
	}
	if !runner(words) {
		return list
	}

	first := true
	for i, w := range words[1:] {
		option := strings.HasPrefix(w, "-")
		if _, value, ok := strings.Cut(w, "="); ok && option {
			w = value
		} else if option {
			continue
		}
		if first || runs(inside(dir, w)) {
			first = !pin(i+1, w) && first
		}
	}

	return list
}

// extensions are those of files that interpreters run.
var extensions = []string{".sh", ".bash", ".zsh", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".lua",
	".awk", ".mk", ".jar", ".go", ".R", ".ps1"}

// runs reports whether a file looks like one that is run: by its name, its mode, or its
// first bytes.
func runs(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	if info.Mode()&0o111 != 0 || slices.Contains(extensions, filepath.Ext(path)) {
		return true
	}

	return bytes.HasPrefix(head(path), []byte("#!"))
}

// changeable reports whether the agent can change what a path leads to, or where it
// leads.
func changeable(path string, set permission.Set) bool {
	real, err := filepath.EvalSymlinks(path)
	return slices.ContainsFunc(set.WriteRoots(), func(root string) bool {
		realRoot, rerr := filepath.EvalSymlinks(root)
		return permission.Beneath(root, path) || err == nil && rerr == nil && permission.Beneath(realRoot, real)
	})
}

// maxScript is how much of a script is read, in bytes. One that is longer counts as
// changed each time.
const maxScript = 16 << 20

// contentOf is the hash of a script's content, or permission.Unreadable.
func contentOf(path string) string {
	f, err := beneath.OpenRegular(path)
	if err != nil {
		return permission.Unreadable
	}
	defer f.Close()
	sum := sha256.New()
	if n, err := io.Copy(sum, io.LimitReader(f, maxScript+1)); err != nil || n > maxScript {
		return permission.Unreadable
	}

	return hex.EncodeToString(sum.Sum(nil))
}

func head(path string) []byte {
	f, err := beneath.OpenRegular(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	begin := make([]byte, 2)
	n, _ := io.ReadFull(f, begin) // an empty file has no beginning

	return begin[:n]
}

// programs are the resolved programs as a user reads them.
func (r resolved) programs() (list []string) {
	for _, s := range r.segments {
		text := s.words[0] + ": " + cmp.Or(s.program, "done by the shell itself, or not found")
		if !slices.Contains(list, text) {
			list = append(list, text)
		}
	}

	if !r.plain {
		list = append(list, "and what the shell fills in when it runs")
	}

	return list
}

// pins are all scripts of the command, each once.
func (r resolved) pins() (list []permission.Script) {
	for _, s := range r.segments {
		for _, p := range s.scripts {
			if !slices.Contains(list, p.Script) {
				list = append(list, p.Script)
			}
		}
	}

	return list
}

// prefix is the rule that a user is offered for a command: the program with its
// sub-command or its script. nil: no such rule covers exactly this command. The name of a
// program alone says too little of what it does; whoever wants that writes the rule.
func (r resolved) prefix(a arguments) permission.Access {
	if !r.plain || len(r.segments) != 1 || len(a.Env) > 0 || a.Stdin != "" || len(a.Domains) > 0 {
		return nil
	}
	s := r.segments[0]
	if !runner(s.words) {
		name := nameOf(s.words)
		if !strings.ContainsRune(name, ' ') && !strings.ContainsRune(name, filepath.Separator) {
			return nil
		}
		return rule(name, s.words)
	}

	// Of a runner every word up to the script: what it would run is what counts.
	if len(s.scripts) == 0 || s.scripts[0].word == 0 || inline(s.words) != "" {
		return nil
	}

	return rule(strings.Join(s.words[:s.scripts[0].word+1], " "), s.words)
}

// rule is the rule of a beginning, if it can be one: quotes are lost in it.
func rule(prefix string, words []string) permission.Access {
	if begins(prefix, words) == 0 {
		return nil
	}
	return permission.Exec{Prefix: prefix}
}

// Scripts are the contents that an @exec: rule is bound to: those of the files that its
// own words name.
func Scripts(rule, dir string, set permission.Set) []permission.Script {
	return resolve(rule, dir, set).pins()
}
