package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is wrong on one system is found for it and not for others: in a function, in a test, in a test beside the
// package, and what has no such name on that system.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.org/m\n\ngo 1.26\n",
		"m.go": `package m

import (
	"os"
	"unsafe"
)

const Word = unsafe.Sizeof(uintptr(0))

func Here() string { return os.Getenv("HERE") + system() }
`,
		"m_linux.go": `package m

import "syscall"

func system() string { var s syscall.EpollEvent; return "linux" + string(rune(s.Fd)) }
`,
		"m_other.go": `//go:build !linux

package m

import "syscall"

func system() string { var s syscall.EpollEvent; return string(rune(s.Fd)) }
`,
		"m_test.go":        "package m\n\nvar Inner = system()\n",
		"m_darwin_test.go": "package m\n\nfunc unused() { n := 1 }\n",
		"outer_test.go":    "package m_test\n\nimport \"example.org/m\"\n\nvar _ = m.Inner + m.Here()\n",
		"narrow/n.go":      "package narrow\n\nimport \"example.org/m\"\n\nvar Small [4 - m.Word]byte\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	for target, want := range map[string][]string{
		"linux/386":   nil,
		"linux/amd64": {"n.go:5:12: "},
		"darwin/arm64": {"m_darwin_test.go:3:17: declared and not used: n", "m_other.go:7:38: undefined: syscall.EpollEvent",
			"n.go:5:12: "},
	} {
		sum, found, err := check(target, dir)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, f := range found {
			texts = append(texts, strings.TrimPrefix(f.Error(), dir+"/"))
		}
		text := strings.Join(texts, "\n")
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: nothing says %q:\n%s", target, w, text)
			}
		}
		if len(found) != len(want) || sum.ours != 4 || sum.others < 20 {
			t.Errorf("%s: %+v, found:\n%s", target, sum, text)
		}
	}
}

func TestWhatIsNoTarget(t *testing.T) {
	for _, target := range []string{"linux", "linux/z80", ""} {
		if _, _, err := check(target, "."); err == nil {
			t.Errorf("%q passed", target)
		}
	}
}
