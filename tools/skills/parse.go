package skills

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"daycare/engine/finding"
	"daycare/engine/form"
	"daycare/engine/lazyregexp"
)

// A Skill is one SKILL.md.
type Skill struct {
	Name          string            `json:"name" jsonschema:"small letters, digits and -, as its folder is called"`
	Description   string            `json:"description" jsonschema:"what it is for and when to use it"`
	License       string            `json:"license"`
	Compatibility string            `json:"compatibility"`
	AllowedTools  string            `json:"allowed-tools"`
	Metadata      map[string]string `json:"metadata"`
	Body          string            `json:"-"`
	Dir           string            `json:"-"` // absolute
	File          string            `json:"-"`
	SHA256        string            `json:"-"` // of the whole file, so that a user sees whether it changed

	source source // of its other files
}

// Bounds of the specification, in characters.
const (
	maxName          = 64
	maxDescription   = 1024
	maxCompatibility = 500
	maxFile          = 256 << 10 // bytes: a how-to, not a book
)

// kind is how skills are read: a skill that a model can choose is used, whatever else is
// wrong with it.
var kind = form.Kind{ID: "skill", Wrong: finding.Warning, Keys: true,
	IDs: map[string]string{"syntax": "front-matter", "unknown-key": "unknown-field", "wrong-type": "type", "bad-value": "type"}}

// Parse reads the SKILL.md at file, an absolute path. ok is false if it cannot
// be used.
func Parse(file string, data []byte) (s Skill, found []finding.Finding, ok bool) {
	sum := sha256.Sum256(data)
	s = Skill{File: file, Dir: filepath.Dir(file), SHA256: hex.EncodeToString(sum[:])}
	f := kind.Front(file, data)
	if f.Failed() {
		if again := kind.Front(file, quoted(data)); !again.Failed() {
			f = again
		}
	}

	f.Read(&s)
	s.Name = norm.NFKC.String(strings.TrimSpace(s.Name))
	s.Description = strings.Join(strings.Fields(s.Description), " ")
	s.Body = strings.ToValidUTF8(f.Body, "\uFFFD")
	if !f.Failed() {
		s.check(f)
	}

	for i := range f.Found {
		f.Found[i].Column = 1 // what is wrong is the line of a key
	}

	return s, f.Found, s.Name != "" && s.Description != ""
}

// plainValue is a line "key: value" whose value is not quoted.
var plainValue = lazyregexp.New(`^([A-Za-z][A-Za-z0-9_-]*):[ \t]+([^'"|>\[{&*!#\s].*)$`)

// quoted is a file whose values with a colon in them are quoted. Such descriptions are
// common and no YAML.
func quoted(data []byte) []byte {
	head, body, _, err := form.Split(data)
	if err != nil {
		return data
	}
	lines := strings.Split(string(head), "\n")
	for i, line := range lines {
		if m := plainValue.FindStringSubmatch(strings.TrimRight(line, "\r")); m != nil && strings.Contains(m[2], ":") {
			lines[i] = m[1] + ": '" + strings.ReplaceAll(m[2], "'", "''") + "'"
		}
	}

	return fmt.Appendf(nil, "---\n%s---\n%s", strings.Join(lines, "\n"), body)
}

// check compares the skill with the specification.
func (s Skill) check(f *form.File) {
	warn := func(id, key, format string, args ...any) {
		f.Tell(finding.Warning, id, key, fmt.Sprintf(format, args...), "")
	}
	folder := norm.NFKC.String(filepath.Base(s.Dir))
	switch n := utf8.RuneCountInString(s.Name); {
	case n == 0:
		f.Tell(finding.Error, "name", "name", "the name is missing", "")
	case n > maxName:
		warn("name", "name", "the name has %d characters; %d are allowed", n, maxName)
	case !wellNamed(s.Name):
		warn("name", "name", "the name %q must be of lower-case letters, digits and single hyphens, none at its ends", s.Name)
	case s.Name != folder:
		warn("name-folder", "name", "the name %q is not that of its folder, %q", s.Name, folder)
	}

	switch n := utf8.RuneCountInString(s.Description); {
	case n == 0:
		f.Tell(finding.Error, "description", "description", "the description is missing: a model chooses by it", "")
	case n > maxDescription:
		warn("description", "description", "the description has %d characters; %d are allowed", n, maxDescription)
	}

	if n := utf8.RuneCountInString(s.Compatibility); n > maxCompatibility {
		warn("compatibility", "compatibility", "compatibility has %d characters; %d are allowed", n, maxCompatibility)
	}
}

func wellNamed(name string) bool {
	for _, r := range name {
		if r != '-' && !unicode.IsDigit(r) && (!unicode.IsLetter(r) || unicode.ToLower(r) != r) {
			return false
		}
	}

	return !strings.HasPrefix(name, "-") && !strings.HasSuffix(name, "-") && !strings.Contains(name, "--")
}
