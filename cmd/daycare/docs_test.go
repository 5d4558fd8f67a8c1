//go:build !race

package main

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"daycare/cmd/daycare/term"
	"daycare/engine/lazyregexp"
)

// cited are the places of a document where commands stand: blocks for the shell,
// and words in backquotes.
var (
	blocks = lazyregexp.New("(?ms)^ *```sh\n(.*?)^ *```")
	inline = lazyregexp.New("`(daycare [^`\n]+)`")
	call   = lazyregexp.New(`(?m)(?:^|[|;&(]) *daycare( [^\n]*)?$`)
)

// Commands that the documents cite exist, and take the flags and arguments that
// they are cited with.
func TestDocs(t *testing.T) {
	seen := 0
	for path, data := range documents(t) {
		var cites []string
		for _, m := range inline.FindAllStringSubmatch(string(data), -1) {
			cites = append(cites, m[1])
		}
		for _, m := range blocks.FindAllStringSubmatch(string(data), -1) {
			cites = append(cites, strings.ReplaceAll(m[1], "\\\n", " "))
		}

		for _, cite := range cites {
			for _, m := range call.FindAllStringSubmatch(cite, -1) {
				seen++
				if err := parses(shellWords(m[1])); err != nil {
					t.Errorf("%s: daycare%s: %v", path, m[1], err)
				}
			}
		}
	}

	if seen < 50 {
		t.Errorf("only %d commands were found in the documents", seen)
	}
}

// The documents name the version of Go that the module needs.
func TestDocsNameTheVersionOfGo(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	needed := regexp.MustCompile(`(?m)^go (\S+)$`).FindSubmatch(mod)
	if needed == nil {
		t.Fatal("go.mod names no version of Go")
	}

	seen := 0
	for path, data := range documents(t) {
		for _, m := range regexp.MustCompile(`\bGo (1\.\d+(?:\.\d+)?)`).FindAllSubmatch(data, -1) {
			if seen++; string(m[1]) != string(needed[1]) {
				t.Errorf("%s says Go %s, go.mod says %s", path, m[1], needed[1])
			}
		}
	}

	if seen < 3 {
		t.Errorf("only %d versions of Go were found in the documents", seen)
	}
}

// The tests that docs/security.md names hold what it promises: they exist, where it says.
func TestSecurityPageNamesItsTests(t *testing.T) {
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-z/]+)\\.(Test[A-Za-z0-9]+)`").FindAllSubmatch(page, -1)
	for _, m := range named {
		folder, test := string(m[1]), string(m[2])
		files, err := filepath.Glob(filepath.Join("../..", folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, path := range files {
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			found = found || bytes.Contains(source, []byte("\nfunc "+test+"(t *testing.T)"))
		}

		if !found {
			t.Errorf("docs/security.md names %s.%s, which is not there", folder, test)
		}
	}

	if len(named) < 50 {
		t.Errorf("only %d tests were found in docs/security.md", len(named))
	}
	t.Logf("%d tests are named", len(named))
}

// documents are README.md and all of docs, by their paths.
func documents(t *testing.T) map[string][]byte {
	t.Helper()
	paths := []string{"../../README.md", "../../CONTRIBUTING.md", "../../SECURITY.md"}
	err := filepath.WalkDir("../../docs", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	all := map[string][]byte{}
	for _, path := range paths {
		if all[path], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// scenes are what a document does: files that it gives (```yaml file=PATH), and transcripts.
var scenes = lazyregexp.New("(?ms)^```(?:console|[a-z]+ file=(\\S+))\n(.*?)^```")

// looks are commands that show what the daemon did, which takes it a moment.
var looks = lazyregexp.New(`^daycare (agents (ls|tail)|(cron|heartbeat) runs) `)

func tour(t *testing.T, document string, atLeast int) {
	t.Parallel()
	dir := t.TempDir()

	// Nothing of this machine, so no key either: the offline model answers.
	env := []string{"PATH=" + os.Getenv("PATH"), "GORACE=" + os.Getenv("GORACE"), "HOME=" + t.TempDir(), "NO_COLOR=1"}
	data, err := os.ReadFile(filepath.Join("../../docs", document))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { stopLeftover(dir) })
	run := func(command string) string {
		cmd := exec.Command("sh", "-c", command+" 2>&1")
		cmd.Dir, cmd.Env = dir, env
		got, _ := cmd.CombinedOutput() // some of them fail, and say so
		return strings.TrimRight(string(got), "\n ")
	}

	ran := 0
	for _, scene := range scenes.FindAllStringSubmatch(string(data), -1) {
		if path := scene[1]; path != "" {
			give(t, filepath.Join(dir, path), scene[2])
			continue
		}

		for _, step := range strings.Split("\n"+scene[2], "\n$ ")[1:] {
			command, want, _ := strings.Cut(step, "\n")
			got := run(command)
			for tries := 200; tries > 0 && looks.MatchString(command) && !likeness(want).MatchString(got); tries-- {
				time.Sleep(100 * time.Millisecond)
				got = run(command)
			}
			if !likeness(want).MatchString(got) {
				t.Fatalf("$ %s\nsays\n%s\nand in %s stands\n%s", command, got, document, want)
			}
			ran++
		}
	}

	if ran < atLeast {
		t.Errorf("only %d commands were found in %s", ran, document)
	}
}

// give writes a file of a document.
func give(t *testing.T, path, content string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(content), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// parses goes as far as a command goes before it runs.
func parses(args []string) error {
	var out bytes.Buffer
	root := newRoot(&term.App{Streams: term.Streams{In: &out, Out: &out, Err: &out}})
	root.InitDefaultHelpCmd()
	cmd, rest, err := root.Find(args)
	if err != nil || len(rest) == 0 { // a command is named, not run
		return err
	}

	cmd.InitDefaultHelpFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if help, _ := cmd.Flags().GetBool("help"); help {
		return nil
	}

	return cmd.ValidateArgs(cmd.Flags().Args())
}

// shellWords are the words of one command as a shell would see them, up to where
// another begins.
func shellWords(line string) []string {
	var words []string
	var word strings.Builder
	open, quote := false, rune(0)
	end := func() {
		if open {
			words = append(words, word.String())
		}
		word.Reset()
		open = false
	}
	for _, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, open = c, true
		case quote == 0 && c == ' ':
			end()
		case quote == 0 && (strings.ContainsRune("|;&<>", c) || c == '#' && !open):
			end()
			return words
		default:
			word.WriteRune(c)
			open = true
		}
	}

	end()
	return words
}
