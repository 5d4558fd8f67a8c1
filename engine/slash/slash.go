// Package slash reads commands that users write as files: what is typed after a slash
// becomes a message to an agent.
//
//	.daycare/commands/review.md     /review FILE
//	.claude/commands/git/fix.md     /git:fix, from the folder of another program
//
//	---
//	description: Review a file
//	argument-hint: FILE
//	---
//	Review $1 for errors that nobody handles. $ARGUMENTS is all that was typed.
//
// $1 to $9 are the words behind the name, $ARGUMENTS is all of them. A text that names
// neither gets them at its end. The text is what the user says: it gives no right.
//
// Files are read when they are used, so an edit applies at once. The user interface, the
// command line and chats use them by the control API.
package slash

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"daycare/engine/beneath"
	"daycare/engine/fault"
	"daycare/engine/finding"
	"daycare/engine/form"
	"daycare/engine/lazyregexp"
	"daycare/engine/workspace"
)

// ErrUnknown: there is no command of that name.
var ErrUnknown = fault.NoCommand

const (
	// maxFile bounds a file, in bytes.
	maxFile = 64 << 10
	// maxInserted bounds what is put in the place of placeholders, in bytes: no message has more.
	maxInserted = 1 << 20
	// maxListed bounds how many commands of a folder are looked at.
	maxListed = 500
)

// A Command is one file.
type Command struct {
	Name, Description, Arguments string // Arguments is a hint, such as FILE
	File                         string
	text                         string
}

// nameRule is what a command can be called: something that every chat takes for one word.
var nameRule = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_-]{0,31}(:[A-Za-z][A-Za-z0-9_-]{0,31})?$`)

var kind = form.Kind{ID: "command", Max: maxFile, Unknown: finding.Info}

// elsewhere are keys of other programs, which mean nothing here.
var elsewhere = []string{"allowed-tools", "model", "disable-model-invocation", "agent", "subtask"}

// Parse reads a command. Its name is that of its file.
func Parse(path string, content []byte) (Command, []finding.Finding) {
	f := kind.Front(path, content)
	var keys struct {
		Description string `json:"description"`
		Arguments   string `json:"argument-hint"`
	}
	f.Read(&keys, elsewhere...)
	c := Command{Name: strings.TrimSuffix(filepath.Base(path), ".md"), Description: keys.Description, Arguments: keys.Arguments,
		File: path, text: f.Body}
	if !nameRule.MatchString(c.Name) {
		f.Tell(finding.Error, "name", "", "invalid command name: "+c.Name, "Rename the file: letters, digits, - and _, and .md.")
	}
	if c.text == "" && !f.Failed() {
		f.Tell(finding.Error, "empty", "", "the message is missing", "Write the message below the keys.")
	}

	return c, f.Found
}

// List reads the commands of a workspace, by name: its own, and those for other programs whose names its own
// commands do not use. Those that cannot be used are left out, and among found.
func List(at workspace.Place) (all []Command, found []finding.Finding) {
	take := func(path, prefix string, data []byte, err error) {
		if err != nil {
			found = append(found, finding.Finding{ID: "command-unreadable", Severity: finding.Error, File: path,
				Reason: beneath.Reason(err).Error(), Remedy: "Check who owns the file and its mode."})
			return
		}

		c, wrong := Parse(path, data)
		c.Name = prefix + c.Name
		found = append(found, wrong...)
		if finding.Join(wrong) == nil && !slices.ContainsFunc(all, func(other Command) bool { return other.Name == c.Name }) {
			all = append(all, c)
		}
	}
	own := filepath.Join(at.Data, "commands")
	names, _ := os.ReadDir(own) // none: nobody wrote any
	for _, e := range names[:min(len(names), maxListed)] {
		if path := filepath.Join(own, e.Name()); isCommand(e) {
			data, _, err := beneath.Own(path, maxFile+1)
			take(path, "", data, large(err))
		}
	}

	shared(at.Dir, ".claude/commands", "", take)
	slices.SortFunc(all, func(a, b Command) int { return strings.Compare(a.Name, b.Name) })
	return all, found
}

// shared reads a folder that agents may be able to write in: nothing there is a link. A
// folder in it is the first half of a name.
func shared(root, dir, prefix string, take func(path, prefix string, data []byte, err error)) {
	folder, err := beneath.Dir(root, dir)
	if err != nil {
		return
	}
	defer folder.Close()
	names, _ := fs.ReadDir(folder.FS(), ".") // none: it is gone
	for _, e := range names[:min(len(names), maxListed)] {
		switch {
		case e.IsDir() && prefix == "" && nameRule.MatchString(e.Name()):
			shared(root, filepath.Join(dir, e.Name()), e.Name()+":", take)
		case isCommand(e):
			data, _, err := beneath.Read(folder, e.Name(), maxFile+1)
			take(filepath.Join(root, dir, e.Name()), prefix, data, large(err))
		}
	}
}

func isCommand(e fs.DirEntry) bool {
	return !e.IsDir() && strings.HasSuffix(e.Name(), ".md") && !strings.HasPrefix(e.Name(), ".")
}

// large lets Parse say that a file is too large.
func large(err error) error {
	if errors.Is(err, beneath.ErrTooLarge) {
		return nil
	}
	return err
}

// Expand is the message that a command makes of what was typed behind its name. A chat that
// allows no - in commands may say _ for it. Errors: ErrUnknown.
func Expand(at workspace.Place, name, arguments string) (string, error) {
	all, _ := List(at)
	same := func(a, b string) bool { return strings.EqualFold(plain.Replace(a), plain.Replace(b)) }
	i := slices.IndexFunc(all, func(c Command) bool { return c.Name == name })
	if i < 0 {
		i = slices.IndexFunc(all, func(c Command) bool { return same(c.Name, name) })
	}
	if i < 0 {
		return "", ErrUnknown
	}

	return all[i].Expand(arguments), nil
}

// plain makes names the same that chats cannot tell apart.
var plain = strings.NewReplacer("-", "_", ":", "_")

var placeholder = lazyregexp.New(`\$(ARGUMENTS|[1-9])\b`)

// Expand is the text with what was typed in the place of $1 to $9 and $ARGUMENTS. Placeholders for which there is no room stay.
func (c Command) Expand(arguments string) string {
	arguments = strings.TrimSpace(arguments)
	words := Words(arguments)
	named, room := false, maxInserted
	text := placeholder.ReplaceAllStringFunc(c.text, func(p string) string {
		value := ""
		if p == "$ARGUMENTS" {
			value = arguments
		} else if n := int(p[1] - '0'); n <= len(words) {
			value = words[n-1]
		}

		named = true
		if room -= len(value); room < 0 {
			return p
		}
		return value
	})
	if !named && arguments != "" {
		return text + "\n\n" + arguments
	}

	return text
}

// Words splits at blanks; text in quotes is one word.
func Words(s string) (words []string) {
	var word strings.Builder
	quote, in := rune(0), false
	for _, r := range s {
		switch {
		case quote == 0 && (r == '"' || r == '\''):
			quote, in = r, true
		case r == quote:
			quote = 0
		case quote == 0 && (r == ' ' || r == '\t' || r == '\n'):
			if in {
				words = append(words, word.String())
				word.Reset()
			}
			in = false
		default:
			word.WriteRune(r)
			in = true
		}
	}

	if in {
		words = append(words, word.String())
	}

	return words
}
