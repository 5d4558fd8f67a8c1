package inbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"daycare/engine/cuid"
	"daycare/engine/lazyregexp"
	"daycare/engine/message"
)

// Dropped is a file of the drop folder as an item. Its At is when it was written.
type Dropped struct {
	Name string // its file name in .taken
	Ref  string // the agent, as on the command line: id, handle or name; "": the terminal's own
	Item Item   // without its files, which the caller of Take keeps
	// Files are the attached files.
	Files []Enclosure
}

// Fields are the members of a dropped JSON file. Others are ignored.
type Fields struct {
	Text    string        `json:"text"`
	ID      string        `json:"id,omitempty" pattern:"^[a-z0-9]{24,32}$"`                                 // of the item; "": one is made
	Type    message.Kind  `json:"type,omitempty" allow:"|message|system_message|reset|compact|rewind|mark"` // "": message
	As      string        `json:"as,omitempty" allow:"|user|system"`                                        // another way to say type
	Origin  string        `json:"origin,omitempty"`                                                         // who speaks; "": system
	Silent  bool          `json:"silent,omitempty"`
	Queue   message.Queue `json:"queue,omitempty" allow:"|steer|followup"` // message; "": the agent's way
	Dedupe  string        `json:"dedupe,omitempty"`
	ReplyTo string        `json:"replyTo,omitempty"`
	Files   []Enclosure   `json:"files,omitempty"`
}

// An Enclosure is an attached file: {"path": "/a/b"}, just "/a/b", or {"id": "…"} of a file
// that is kept already. The file of a path is copied when the message is claimed; after
// that it may change or disappear.
type Enclosure struct {
	Path string `json:"path,omitempty"`
	Name string `json:"name,omitempty"` // of the copy; "": the last element of Path
	ID   string `json:"id,omitempty"`
}

// UnmarshalJSON accepts both spellings.
func (e *Enclosure) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &e.Path)
	}
	type plain Enclosure
	return json.Unmarshal(data, (*plain)(e))
}

const (
	// maxDroppedFile limits a JSON file, in bytes. Its text is limited to MaxItemBytes,
	// which escapes can blow up sixfold.
	maxDroppedFile = 6*MaxItemBytes + 64<<10
	// maxDroppedName leaves room for an item id in front and a suffix behind.
	maxDroppedName = 200
)

var (
	itemID    = lazyregexp.New(`^[a-z0-9]{24,32}$`)
	handleRef = lazyregexp.New(`^[0-9]+(-[0-9]*)+$`)
)

// Addressee returns the agent in a file name: what precedes the first two underscores, or
// "" if there are none. A handle is written with - for /.
func Addressee(name string) string {
	ref, _, ok := strings.Cut(name, "__")
	if !ok {
		return ""
	}
	if handleRef.MatchString(ref) {
		return strings.ReplaceAll(ref, "-", "/")
	}

	return ref
}

// parseDropped reads the content of a dropped file by its name.
func parseDropped(name string, content []byte) (Fields, error) {
	var l Fields
	if !utf8.ValidString(name) || len(name) > maxDroppedName {
		return l, fmt.Errorf("the name is not UTF-8 or longer than %d bytes", maxDroppedName)
	}

	switch ext := strings.ToLower(filepath.Ext(name)); ext {
	case ".md", ".txt":
		if !utf8.Valid(content) {
			return l, errors.New("the text is not UTF-8")
		}
		l.Text = string(content)
	case ".json":
		if err := json.Unmarshal(content, &l); err != nil {
			return l, fmt.Errorf("not valid JSON: %w", err)
		}
	default:
		return l, fmt.Errorf("the name must end in .md, .txt or .json, not %q", ext)
	}

	return l, l.check()
}

// CheckDropped returns why a file with that name and content would be refused, or nil if it
// would be accepted, provided that the agent exists.
func CheckDropped(name string, content []byte) error {
	_, err := parseDropped(name, content)
	return err
}

// check completes the fields and refuses what a dropped message must not be. It never
// answers an approval request: only a user can.
func (l *Fields) check() error {
	switch l.As {
	case "":
	case "user":
		l.Type = message.Text
	case "system":
		l.Type = message.System
	default:
		return fmt.Errorf(`"as" must be user or system, not %q`, l.As)
	}

	if l.Type == "" {
		l.Type = message.Text
	}
	kinds := []message.Kind{message.Text, message.System, message.Reset, message.Compact, message.Rewind, message.Mark}
	if !slices.Contains(kinds, l.Type) {
		return fmt.Errorf(`"type" must be one of %v, not %q`, kinds, l.Type)
	}
	if l.Type == message.System && l.Origin == "" {
		l.Origin = "system"
	}
	if l.Type != message.System {
		l.Origin, l.Silent = "", false
	}
	if l.Type != message.Text {
		l.Queue = ""
	}
	if l.Queue != "" && l.Queue != message.Steer && l.Queue != message.Followup {
		return fmt.Errorf(`"queue" must be one of [%s %s], not %q`, message.Steer, message.Followup, l.Queue)
	}
	if l.ID != "" && !itemID.MatchString(l.ID) {
		return fmt.Errorf(`"id" must be 24 to 32 lower-case letters and digits, not %q`, l.ID)
	}
	if len(l.Text) > MaxItemBytes {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(l.Text), MaxItemBytes)
	}

	asks := l.Type == message.Text || l.Type == message.System
	if asks && strings.TrimSpace(l.Text) == "" && len(l.Files) == 0 {
		return errors.New("the text is missing")
	}

	for _, f := range l.Files {
		switch {
		case f.ID != "" && f.Path != "":
			return fmt.Errorf("file %q: has both a path and an id; use one", f.Path)
		case f.ID == "" && !filepath.IsAbs(f.Path):
			return fmt.Errorf("file %q: the path must be absolute", f.Path)
		}
	}

	return nil
}

// item returns the message as an item with that id.
func (l *Fields) item(id string, at time.Time) Item {
	it := Item{ID: id, At: at, Kind: l.Type, Dedupe: l.Dedupe, Text: l.Text, Origin: l.Origin, Silent: l.Silent, Queue: l.Queue,
		Context: message.Context{ReplyTo: l.ReplyTo}}
	if it.Dedupe == "" {
		it.Dedupe = "drop:" + id
	}

	return it
}

// idOr returns the id in the file, or a new one.
func (l *Fields) idOr() string {
	if l.ID != "" {
		return l.ID
	}
	return cuid.Unique()
}
