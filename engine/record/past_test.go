package record

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// At each moment the past is what the model saw then: with what was rewound later, without what
// was rewound before, and with the summary of that time.
func TestPastIsWhatTheModelSaw(t *testing.T) {
	dir := t.TempDir()
	lines := []string{
		`{"seq":1,"at":"T","type":"start","session":"one","v":1}`,
		`{"seq":2,"at":"T","type":"turn_begin","turn":"t1","items":["i1"],"attempt":1}`,
		`{"seq":3,"at":"T","type":"user_message","item":"i1","text":"a","zone":"UTC"}`,
		`{"seq":4,"at":"T","type":"assistant_message","turn":"t1","text":"A","finish":"end_turn","tokens":{},"cost":0}`,
		`{"seq":5,"at":"T","type":"turn_end","turn":"t1","items":["i1"],"outs":[],"reason":"done","session":"one"}`,
		`{"seq":6,"at":"T","type":"turn_begin","turn":"t2","items":["i2"],"attempt":1}`,
		`{"seq":7,"at":"T","type":"user_message","item":"i2","text":"b","zone":"UTC"}`,
		`{"seq":8,"at":"T","type":"assistant_message","turn":"t2","text":"B","finish":"end_turn","tokens":{},"cost":0}`,
		`{"seq":9,"at":"T","type":"turn_end","turn":"t2","items":["i2"],"outs":[],"reason":"done","session":"one"}`,
		`{"seq":10,"at":"T","type":"rewind","to":5}`,
		`{"seq":11,"at":"T","type":"user_message","item":"i3","text":"c","zone":"UTC"}`,
		`{"seq":12,"at":"T","type":"summary","text":"S","from":1,"keptFrom":11,"sha256":"","tokens":{},"cost":0}`,
		`{"seq":13,"at":"T","type":"user_message","item":"i4","text":"d","zone":"UTC"}`,
		`{"seq":14,"at":"T","type":"reset","session":"two","v":1,"reason":"user"}`,
		`{"seq":15,"at":"T","type":"user_message","item":"i5","text":"e","zone":"UTC"}`,
	}
	text := ""
	for _, line := range lines {
		text += strings.Replace(line, `"T"`, `"2026-11-20T10:00:00.000Z"`, 1) + "\n"
	}
	if err := os.WriteFile(filepath.Join(dir, historyName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := OpenPast(dir)
	if err != nil {
		t.Fatal(err)
	}

	said := func(session string, seq int64) string {
		c, err := p.Before(session, seq)
		if err != nil {
			t.Fatal(err)
		}
		out := ""
		if c.Summary != nil {
			out = "S:"
		}
		for _, e := range c.Entries {
			switch r := e.Rec.(type) {
			case *User:
				out += r.Text
			case *Assistant:
				out += r.Text
			}
		}

		whole, summary, err := contextAt(dir, seq)
		if err != nil || len(whole) != len(c.Entries) || (summary == nil) != (c.Summary == nil) {
			t.Errorf("before %d it is not what a reader of the files sees: %d and %d entries, %v", seq, len(c.Entries), len(whole), err)
		}
		return out
	}
	for _, tt := range []struct {
		session string
		seq     int64
		want    string
	}{{"one", 4, "a"}, {"one", 8, "aAb"}, {"one", 10, "aAbB"}, {"one", 12, "aAc"}, {"one", 14, "S:cd"},
		{"two", 16, "e"}, {"one", 8, "aAb"}} {
		if got := said(tt.session, tt.seq); got != tt.want {
			t.Errorf("before %d of %s the model sees %q, want %q", tt.seq, tt.session, got, tt.want)
		}
	}

	// In whatever order it is asked for.
	moments := map[int64]string{4: "a", 5: "aA", 8: "aAb", 10: "aAbB", 12: "aAc", 14: "S:cd"}
	for first := range moments {
		for second, want := range moments {
			said("one", first)
			if got := said("one", second); got != want {
				t.Errorf("before %d, and then before %d the model sees %q, want %q", first, second, got, want)
			}
		}
	}

	names := ""
	for _, turn := range p.Turns("one") {
		names += fmt.Sprint(turn.Turn, len(turn.Entries), " ")
	}
	if names != "t14 t24 " || len(p.Turns("two")) != 0 || p.Begins().Session != "one" {
		t.Errorf("turns %q, %d; begins %+v", names, len(p.Turns("two")), p.Begins())
	}
}
