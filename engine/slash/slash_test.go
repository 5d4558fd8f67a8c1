package slash

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/workspace"
)

// write makes the files of a workspace.
func write(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	return root
}

// What is typed becomes a message: words, all of it, or all of it at the end.
func TestExpand(t *testing.T) {
	root := write(t, map[string]string{
		".daycare/commands/review.md": "---\ndescription: Review a file\nargument-hint: FILE\n---\nReview $1, mind $2. All: " +
			"$ARGUMENTS.\n",
		".daycare/commands/fix-it.md":   "Fix it.",
		".claude/commands/review.md":    "of another program",
		".claude/commands/git/undo.md":  "---\nallowed-tools: Bash(git:*)\nmodel: opus\n---\nUndo $1",
		".claude/commands/price.md":     "It costs $10 or $ARGUMENTSX",
		".claude/commands/a/b/c.md":     "too deep",
		".claude/commands/notes.txt":    "no command",
		".daycare/commands/.hidden.md":  "hidden",
		".daycare/commands/sub/more.md": "own folders have none",
	})
	all, found := List(workspace.At(root))
	var names []string
	for _, c := range all {
		names = append(names, c.Name)
	}

	if diff := cmp.Diff([]string{"fix-it", "git:undo", "price", "review"}, names); diff != "" || len(found) > 0 {
		t.Errorf("commands (-want +got):\n%s%v", diff, found)
	}
	if c := all[3]; c.Description != "Review a file" || c.Arguments != "FILE" {
		t.Errorf("/review: %+v", c)
	}

	for _, tt := range []struct{ name, arguments, want string }{
		{"review", " main.go  'two words' x ", "Review main.go, mind two words. All: main.go  'two words' x."},
		{"review", "", "Review , mind . All: ."},
		{"fix-it", "", "Fix it."},
		{"fix-it", "the test $1", "Fix it.\n\nthe test $1"},
		{"fix_it", "", "Fix it."},
		{"git:undo", "$ARGUMENTS", "Undo $ARGUMENTS"},
		{"git_undo", "it", "Undo it"},
		{"price", "", "It costs $10 or $ARGUMENTSX"},
	} {
		t.Run(tt.name+" "+tt.arguments, func(t *testing.T) {
			if got, err := Expand(workspace.At(root), tt.name, tt.arguments); err != nil || got != tt.want {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
		})
	}

	for _, name := range []string{"", "nothing", "../settings", "sub:more", "a:b:c"} {
		if _, err := Expand(workspace.At(root), name, ""); !errors.Is(err, ErrUnknown) {
			t.Errorf("/%s: %v, want ErrUnknown", name, err)
		}
	}
}

// What cannot be used is said with its file and left out; what an agent could plant is no
// way to a file of the user.
func TestCommandsThatCannotBeUsed(t *testing.T) {
	root := write(t, map[string]string{
		".daycare/commands/two words.md": "x",
		".daycare/commands/empty.md":     "---\ndescription: none\n---\n",
		".daycare/commands/broken.md":    "---\ndescription: [\n---\nx",
		".daycare/commands/large.md":     strings.Repeat("x", maxFile+1),
		".daycare/commands/good.md":      "---\nfuture-key: 1\n---\ngood",
		".claude/commands/good2.md":      "good",
		"key":                            "TOP-SECRET",
	})
	if err := os.Symlink(filepath.Join(root, "key"), filepath.Join(root, ".claude/commands/leak.md")); err != nil {
		t.Fatal(err)
	}

	all, found := List(workspace.At(root))
	var names, wrong []string
	for _, c := range all {
		names = append(names, c.Name)
		if strings.Contains(c.text, "TOP-SECRET") {
			t.Errorf("/%s says what a link leads to", c.Name)
		}
	}

	for _, f := range found {
		wrong = append(wrong, filepath.Base(f.File)+" "+f.ID)
	}
	slices.Sort(wrong)
	if diff := cmp.Diff([]string{"good", "good2"}, names); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}

	want := []string{"broken.md command-syntax", "empty.md command-empty", "good.md command-unknown-key",
		"large.md command-too-large", "leak.md command-unreadable", "two words.md command-name"}
	if diff := cmp.Diff(want, wrong); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
}

// Nothing that a file or a user says ends the program.
func FuzzExpand(f *testing.F) {
	f.Add("---\ndescription: x\n---\n$1 $ARGUMENTS", "a 'b c")
	f.Add("---", "$1")
	f.Fuzz(func(t *testing.T, file, arguments string) {
		c, _ := Parse("x.md", []byte(file))
		if got := c.Expand(arguments); len(got) > (len(file)+1)*(len(arguments)+2)+len(arguments)+2 {
			t.Errorf("%d bytes of %d and %d", len(got), len(file), len(arguments))
		}
	})
}
