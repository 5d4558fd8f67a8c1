package terminal

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// long is a text that a terminal cannot show as it is: 200 lines with tabs, spaces at both
// ends, control characters and the marks of tokens.
func long() string {
	var b strings.Builder
	b.WriteString("  \tfirst\x1b[2J\u202e" + opens + closes + gap + "0\n")
	for i := range 198 {
		fmt.Fprintf(&b, "line %d\t@file %s\n", i, strings.Repeat("é漢", i%3))
	}
	return b.String() + "last \n"
}

// A long paste is one token in the line, and is sent as it was pasted, byte for byte.
func TestALongPasteIsOneToken(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0 := newDaemon()
		drive(t, d0, 80, 24, func(d *driver) {
			d.write("look at ")
			d.send(tea.PasteMsg{Content: strings.ReplaceAll(long(), "\n", "\r")}) // as terminals send it
			d.shows("› look at [pasted 200 lines]", "Backspace deletes the paste · Ctrl+O opens it")
			d.hides("line 7")
			d.write(" and ")
			d.send(tea.PasteMsg{Content: strings.Repeat("x", 1234)})
			d.send(tea.PasteMsg{Content: "short\npaste"})
			d.golden("paste")
			d.press("enter")
			want := "look at " + long() + " and " + strings.Repeat("x", 1234) + "short\npaste"
			if n := len(d0.got); n != 1 || d0.got[0].Text != want {
				t.Fatalf("sent %+v\nwant %q", d0.got, want)
			}
			d.press("up")
			d.shows("› look at [pasted 200 lines] and [pasted 1,234 characters #2]short")
			d.press("enter")
			if n := len(d0.got); n != 2 || d0.got[1].Text != want {
				t.Fatalf("said again: %+v\nwant %q", d0.got[1:], want)
			}
		})
	})
}

// Keys go over a token and delete it as if it were one character.
func TestATokenIsOneCharacter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0 := newDaemon()
		drive(t, d0, 80, 24, func(d *driver) {
			text := strings.Repeat("line\n", 10) + "line"
			for _, way := range [][]string{{"backspace", "backspace"}, {"left", "left", "delete"}, {"ctrl+w"},
				{"left", "left", "ctrl+k"}} {
				d.press("ctrl+c")
				d.write("a")
				d.send(tea.PasteMsg{Content: text})
				d.write("b")
				d.shows("› a[pasted 11 lines]b")
				d.press(way...)
				d.hides("pasted", "lines")
				if len(d.m.talk.input.pastes) > 0 {
					t.Errorf("%q leaves %+v", way, d.m.talk.input.pastes)
				}
			}
			d.press("ctrl+c")
			d.send(tea.PasteMsg{Content: text})
			d.press("left")
			d.write("a")
			d.press("right")
			d.write("b")
			d.shows("› a[pasted 11 lines]b")
			d.press("alt+b", "alt+u")
			d.write(" c")
			d.press("enter")
			if n := len(d0.got); n != 1 || !strings.HasPrefix(d0.got[0].Text, "A"+text) {
				t.Errorf("sent %+v", d0.got)
			}
		})
	})
}

// What was pasted and not sent is there after another agent was looked at, and after leaving.
func TestDraftsKeepPastes(t *testing.T) {
	hints := t.TempDir()
	bubble(t, func(t *testing.T) {
		d0 := newDaemon()
		d0.add("0/", ownName, nil)
		d0.add("1/", "second", nil)
		drives(t, d0, hints, 100, 24, func(d *driver) {
			d.press("enter")
			d.send(tea.PasteMsg{Content: long()})
			d.press("ctrl+right")
			d.hides("pasted")
			d.press("ctrl+left")
			d.shows("› [pasted 200 lines]")
		})
		drives(t, d0, hints, 100, 24, func(d *driver) {
			d.shows("› [pasted 200 lines]")
			d.press("enter")
			if n := len(d0.got); n != 1 || d0.got[0].Text != long() {
				t.Errorf("sent %+v", d0.got)
			}
		})
		drives(t, d0, hints, 100, 24, func(d *driver) {
			d.press("up")
			d.shows("› [pasted 200 lines]")
		})
	})
}

// A paste is a message, whatever it begins with: no command, and nothing for the shell.
func TestAPasteRunsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0 := newDaemon()
		drive(t, d0, 80, 24, func(d *driver) {
			for _, begin := range []string{"/quit", "!touch /tmp/x"} {
				text := begin + strings.Repeat("\nline", 20)
				d.send(tea.PasteMsg{Content: text})
				d.press("enter")
				if n := len(d0.got); n == 0 || d0.got[n-1].Text != text {
					t.Errorf("sent %+v", d0.got)
				}
			}
		})
	})
}

// What comes back from the editor has the pastes that were left alone as tokens.
func TestTheEditorOpensPastes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0 := newDaemon()
		drive(t, d0, 80, 24, func(d *driver) {
			d.write("see ")
			d.send(tea.PasteMsg{Content: long()})
			from := whole(d.m.talk.input.value())
			if from != "see "+long() {
				t.Fatalf("the editor shows %q", from)
			}
			d.send(edited{from: from, text: from + "\n"})
			d.shows("› see [pasted 200 lines]")
			d.send(edited{from: from, text: "please " + from + "now\n"})
			d.shows("› please see [pasted 200 lines]now")
			d.send(edited{from: from, text: "a few\nwords\n"})
			d.shows("› a few", "  words")
			d.hides("pasted")
			d.send(edited{from: from, text: "keeps\tits tab\n"})
			if got := whole(d.m.talk.input.value()); got != "keeps\tits tab" {
				t.Errorf("the line has %q", got)
			}
		})
	})
}

// A line of the history that is longer than others does not hide those behind it.
func TestHistoryReadsLongLines(t *testing.T) {
	m := &memory{dir: t.TempDir()}
	m.addTyped("first")
	m.addTyped(pack(strings.Repeat("x", 2<<20)))
	m.addTyped("last")
	if got := m.typed(); len(got) != 3 || got[2] != "last" {
		t.Fatalf("%d lines are offered again", len(got))
	}
	for range 3 {
		m.addTyped(strings.Repeat("x", 2<<20))
	}
	if got := m.typed(); len(got) != 2 {
		t.Errorf("%d lines of 2 MB are kept", len(got))
	}
	if data, err := os.ReadFile(filepath.Join(m.dir, typedFile)); err != nil || len(data) > keptBytes+1000 {
		t.Errorf("the file has %d bytes, %v", len(data), err)
	}
}

// Packed text says what went into it.
func FuzzPack(f *testing.F) {
	f.Add("a", long(), "b")
	f.Add("", opens+gap+"1"+closes, "\x00\xff")
	f.Fuzz(func(t *testing.T, before, text, after string) {
		before, after = strings.ToValidUTF8(before, ""), strings.ToValidUTF8(after, "")
		if !held(before) || !held(after) {
			t.Skip()
		}
		text = tidy(text)
		if got := whole(before + pack(text) + after); got != before+text+after {
			t.Fatalf("%q + %q + %q is %q", before, text, after, got)
		}
	})
}

// Whatever keys are pressed: a token is there as a whole or not at all, and with its text.
func FuzzTokens(f *testing.F) {
	f.Add([]byte("pa\x01b\x03p\x05\x06\x02"))
	f.Add([]byte("p p\x07\x07\x00\x08\x09p\x0a\x0b"))
	keys := []tea.KeyPressMsg{{Code: tea.KeyBackspace}, {Code: tea.KeyLeft}, {Code: tea.KeyRight}, {Code: tea.KeyDelete},
		{Code: tea.KeyUp}, {Code: tea.KeyDown}, {Code: tea.KeyHome}, {Code: tea.KeyLeft, Mod: tea.ModShift},
		{Code: tea.KeyRight, Mod: tea.ModShift}, {Code: 'w', Mod: tea.ModCtrl}, {Code: 'u', Mod: tea.ModAlt},
		{Code: 'b', Mod: tea.ModAlt}, {Code: 'd', Mod: tea.ModAlt}, {Code: 'k', Mod: tea.ModCtrl}, {Code: 'c', Mod: tea.ModAlt},
		{Code: tea.KeyEnter, Mod: tea.ModAlt}, {Code: 'f', Mod: tea.ModAlt}}
	text := strings.Repeat("PASTE\n", 12)
	f.Fuzz(func(t *testing.T, typed []byte) {
		if len(typed) > 200 {
			t.Skip()
		}
		in := newInput(nil)
		in.area.SetWidth(40)
		for _, c := range typed {
			switch {
			case int(c) < len(keys):
				in.update(keys[c])
			case c == 'p':
				in.paste(text)
			case c >= ' ' && c < 0x7f:
				in.update(tea.KeyPressMsg{Code: rune(c), Text: string(rune(c))})
			}
			tokens := strings.Count(in.shown(), opens)
			if strings.Count(in.value(), opens) != tokens || strings.Count(in.shown(), closes) != tokens {
				t.Fatalf("after %q the line has %q", typed, in.shown())
			}
			if strings.ContainsAny(whole(in.value()), opens+closes+gap) {
				t.Fatalf("after %q the line has %q", typed, in.shown())
			}
		}
		if again := newInput(nil); len(typed) > 0 {
			again.restore(in.value())
			if again.value() != in.value() {
				t.Fatalf("%q comes back as %q", in.value(), again.value())
			}
		}
	})
}
