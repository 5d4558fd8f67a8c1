package sensitive

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"daycare/engine/workspace"
)

// Data is the folder in which daycare keeps what no agent may reach.
const Data = workspace.Home

// Fold is a name as file systems compare it that do not tell the case of letters: ſ is an s
// for them, and some pass over characters that are not seen.
func Fold(name string) string {
	ascii := !strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf })
	if ascii {
		return strings.ToLower(name)
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == 'ſ':
			return 's'
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		}

		return unicode.ToLower(r)
	}, name)
}

// A Table knows the home folders that the names in homes belong to, and the folders in
// which programs are looked for by their names.
type Table struct{ homes, programs []string }

// Here returns the table with the homes of this machine's users and of the one that
// runs daycare, and with the folders of the PATH.
func Here() Table {
	t := people().Programs(searched()...)
	if own, err := os.UserHomeDir(); err == nil {
		t = t.And(own)
	}

	return t
}

// And returns the table with one more home.
func (t Table) And(home string) Table {
	for _, path := range With(home).homes {
		if !slices.Contains(t.homes, path) {
			t.homes = append(slices.Clip(t.homes), path)
		}
	}

	return t
}

// Programs returns the table with folders of programs: whatever is put into one runs later,
// under a name that a user or a script types.
func (t Table) Programs(dirs ...string) Table {
	t.programs = dirs
	return t
}

var searched = sync.OnceValue(func() []string { return foldersIn(os.Getenv("PATH")) })

// foldersIn are the folders of a PATH, without symbolic links as far as they exist.
func foldersIn(path string) (dirs []string) {
	for _, dir := range filepath.SplitList(path) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		if filepath.IsAbs(dir) {
			dirs = append(dirs, filepath.Clean(dir))
		}
	}

	return dirs
}

var people = sync.OnceValue(func() Table { return With(passwdHomes("/etc/passwd")...) })

// With returns the table with these homes, as far as they are full paths that exist.
func With(homes ...string) Table {
	var t Table
	for _, home := range homes {
		real, err := filepath.EvalSymlinks(home)
		for _, path := range []string{filepath.Clean(home), real} {
			if err == nil && path != "/" && filepath.IsAbs(path) && !slices.Contains(t.homes, path) {
				t.homes = append(t.homes, path)
			}
		}
	}

	return t
}

// Later reports whether the entry name of a folder runs something later. Names are
// compared without case, because some file systems do.
func (t Table) Later(folder, name string) bool {
	if slices.Contains(t.programs, filepath.Join(folder, name)) {
		return true
	}
	name = Fold(name)
	if later[name] || slices.ContainsFunc(laterEnds, func(end string) bool { return strings.HasSuffix(name, end) }) ||
		later[Fold(filepath.Base(folder))+"/"+name] {
		return name == ".git" || name == Data ||
			!slices.ContainsFunc(installed, func(dir string) bool { return strings.Contains(folder+"/", "/"+dir+"/") })
	}
	if !t.IsHome(folder) {
		return false
	}

	return homeLater[name] || strings.HasPrefix(name, ".") && !setAside(name)
}

// Secret reports whether the entry name of a folder holds secrets.
func (t Table) Secret(folder, name string) bool {
	if secret[Fold(name)] {
		return true
	}
	for _, home := range t.homes {
		if !strings.HasPrefix(folder, home) { // most are not in a home at all
			continue
		}
		rel, err := filepath.Rel(home, filepath.Join(folder, name))
		if err == nil && slices.ContainsFunc(homeSecret, func(s string) bool { return strings.EqualFold(s, Fold(rel)) }) {
			return true
		}
	}

	return false
}

// Anchor returns the first path between root, which itself does not count, and path
// that in reports: what a right must name to reach path. "": none.
func Anchor(root, path string, in func(folder, name string) bool) string {
	rel, err := filepath.Rel(root, path)
	if err != nil || rel == "." || !filepath.IsLocal(rel) {
		return ""
	}

	for name := range strings.SplitSeq(rel, string(filepath.Separator)) {
		if in(root, name) {
			return filepath.Join(root, name)
		}
		root = filepath.Join(root, name)
	}

	return ""
}

// Secrets are the paths of secrets in the homes; they need not exist.
func (t Table) Secrets() (paths []string) {
	for _, home := range t.homes {
		for _, name := range homeSecret {
			paths = append(paths, filepath.Join(home, name))
		}
	}

	return paths
}

// IsHome reports whether a folder is the home of a user.
func (t Table) IsHome(folder string) bool { return slices.Contains(t.homes, folder) }

// HomeIn is a home that is a folder or is in it; "": none.
func (t Table) HomeIn(folder string) string {
	for _, home := range t.homes {
		if home == folder || folder == "/" || strings.HasPrefix(home, folder+"/") {
			return home
		}
	}

	return ""
}

// aside is what the name of something ends in that was put aside.
const aside = ".held"

// Aside is the nth name under which what has a name can be put aside.
func Aside(name string, n int) string {
	if n > 1 {
		return name + aside + "-" + strconv.Itoa(n)
	}
	return name + aside
}

// setAside reports whether a name is one that Aside made.
func setAside(name string) bool {
	base, number, cut := strings.Cut(name[max(0, strings.LastIndexByte(name, '.')):], "-")
	_, err := strconv.Atoi(number)
	return base == aside && (!cut || err == nil)
}

// passwdHomes are the homes of root and of those who can log in, by convention.
func passwdHomes(path string) (list []string) {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	const firstPerson, nobody = 1000, 65534
	for s := bufio.NewScanner(io.LimitReader(f, 1<<20)); s.Scan(); {
		fields := strings.Split(s.Text(), ":")
		if len(fields) < 7 {
			continue
		}
		uid, err := strconv.Atoi(fields[2])
		if err == nil && (uid == 0 || uid >= firstPerson && uid != nobody) && filepath.IsAbs(fields[5]) {
			list = append(list, fields[5])
		}
	}

	return list
}
