package term

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/creack/pty"
)

type word string

type named struct{ name string }

func (n named) String() string { return n.name }

// Whatever is printed of others is spelled where it could steer a terminal; what a Style adds stays, and so do numbers.
func TestPrintf(t *testing.T) {
	const evil = "a\x1b[2Jb\u202e"
	for want, args := range map[string][]any{
		`%s a\x1b[2Jb\u202e`:       {"%%s %s", evil},
		`word a\x1b[2Jb\u202e`:     {"word %s", word(evil)},
		`error a\x1b[2Jb\u202e`:    {"error %v", errors.New(evil)},
		`named a\x1b[2Jb\u202e`:    {"named %s", named{evil}},
		"missing <nil>":            {"missing %s", (*named)(nil)},
		`bytes a\x1b[2Jb\u202e`:    {"bytes %s", []byte(evil)},
		`list [a\x1b[2Jb\u202e x]`: {"list %v", []string{evil, "x"}},
		`value {a\x1b[2Jb\u202e 1}`: {"value %v", struct {
			S string
			N int
		}{evil, 1}},
		"red \x1b[31ma\\x1b[2Jb\\u202e\x1b[0m": {"red %s", Style(true).Red(evil)},
		`plain a\x1b[2Jb\u202e`:                {"plain %s", Style(false).Dim(evil)},
		"  7 0.50 true 1.5s <nil>":             {"%3d %.2f %t %s %v", 7, 0.5, true, 1500 * time.Millisecond, nil},
	} {
		var out bytes.Buffer
		if err := Printf(&out, args[0].(string), args[1:]...); err != nil || out.String() != want {
			t.Errorf("got %q, %v, want %q", out.String(), err, want)
		}
	}
}

// What is said beside the data and what is asked is spelled, too.
func TestStreamsSpell(t *testing.T) {
	const evil = "a\x1b[2Jb"
	for name, say := range map[string]func(s *Streams){
		"Print":  func(s *Streams) { s.Print("%s\n", evil) },
		"Say":    func(s *Streams) { s.Say("%s\n", evil) },
		"Warn":   func(s *Streams) { s.Warn("%s", evil) },
		"Note":   func(s *Streams) { s.Note("%s", evil) },
		"Report": func(s *Streams) { s.Report(errors.New(evil)) },
		"Agrees": func(s *Streams) { s.Agrees(evil) },
		"Yes":    func(s *Streams) { s.Yes(evil) },
		"Answer": func(s *Streams) { _, _ = s.Answer(evil, evil) },
		"Fields": func(s *Streams) { s.Fields("name", evil) },
		"Table":  func(s *Streams) { _ = Table{{"NAME"}, {evil}}.Write(s.Out, true) },
	} {
		var out bytes.Buffer
		say(&Streams{In: bytes.NewReader(nil), Out: &out, Err: &out})
		if got := out.Bytes(); bytes.Contains(got, []byte("\x1b[2J")) || !bytes.Contains(got, []byte(`\x1b[2J`)) {
			t.Errorf("%s writes %q", name, got)
		}
	}
}

// The bytes of an archive go to a file or a program, never to a terminal.
func TestTakesArchive(t *testing.T) {
	master, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	defer terminal.Close()
	if err := (&Streams{Out: terminal}).TakesArchive(); err == nil || err.Error() != "cannot write an archive to a terminal" {
		t.Errorf("a terminal: %v", err)
	}
	if err := (&Streams{Out: new(bytes.Buffer)}).TakesArchive(); err != nil {
		t.Errorf("a program: %v", err)
	}
}
