package permission

import (
	"strings"
	"testing"
	"unicode"

	"daycare/engine/attacktest"
)

// Every character that cannot be seen is named in what users read before they answer.
func TestEveryInvisibleCharacterIsNamed(t *testing.T) {
	named := map[string]rune{"right-to-left override": 0x202e, "left-to-right isolate": 0x2066,
		"zero width space": 0x200b, "zero width joiner": 0x200d,
		"word joiner": 0x2060, "byte order mark": 0xfeff, "soft hyphen": 0xad, "tag letter": 0xe0041,
		"language tag": 0xe0001, "variation selector": 0xfe0f,
		"variation selector supplement": 0xe0100, "Hangul filler": 0x3164, "halfwidth filler": 0xffa0,
		"Hangul choseong filler": 0x115f, "empty Braille": 0x2800,
		"grapheme joiner": 0x34f, "Khmer vowel": 0x17b4, "Mongolian separator": 0x180e, "no-break space": 0xa0,
		"em space": 0x2003, "ideographic space": 0x3000,
		"line separator": 0x2028, "paragraph separator": 0x2029, "carriage return": '\r', "escape": 0x1b,
		"delete": 0x7f, "C1": 0x9b, "private use": 0xe000,
		"noncharacter": 0xfffe, "deprecated format": 0x206a, "interlinear anchor": 0xfff9, "musical format": 0x1d173,
		"shorthand format": 0x1bca0}
	for name, r := range named {
		got := Visible("a" + string(r) + "b")
		if strings.ContainsRune(got, r) || !strings.HasPrefix(got, "a[U+") || !strings.HasSuffix(got, "]b") {
			t.Errorf("%s (U+%04X) reads %q", name, r, got)
		}
		attacktest.Held(t, attacktest.Row{Class: "approvals", How: "named in the card", Name: "invisible: " + name})
	}

	if got := Visible("a\xffb"); got != "a[0xFF]b" {
		t.Errorf("a byte that is no text reads %q", got)
	}
	for _, plain := range []string{"git push", "a\n\tb", "Grüße, 日本語, Ελλάδα, e\u0301", "\U0001f600 → ✓ …", "\ufffd"} {
		if got := Visible(plain); got != plain {
			t.Errorf("%q reads %q", plain, got)
		}
	}

	count := 0
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if unicode.In(r, unicode.Cf, unicode.Cc, unicode.Co, unicode.Zl, unicode.Zp, unicode.Variation_Selector,
			unicode.Other_Default_Ignorable_Code_Point) && r != '\n' && r != '\t' {
			count++
			if !unseen(r) {
				t.Errorf("U+%04X is not named", r)
			}
		}
	}

	t.Logf("%d characters are named", count)
}

// No text of a request can pass for a fact about it.
func TestNoLineOfARequestReadsLikeAFact(t *testing.T) {
	r := Request{Tag: "@exec:a\nsandbox     bwrap", Reason: "x\nfolder      /safe",
		Workdir: "/ws\nruns        git: /usr/bin/git", Sandbox: NoSandbox,
		Programs: []string{"a: b\nscript      c"}, Sources: []string{"x\nreason      y"},
		Detail: Detail{Command: "rm -rf /\nfolder      /safe\r\nsandbox     bwrap"}}
	for line := range strings.Lines(r.Card()) {
		name, _, _ := strings.Cut(line, " ")
		switch {
		case name == "": // of the command, indented
		case name == "folder" && !strings.HasPrefix(line, "folder      /ws[U+000A]"), name == "script",
			strings.HasPrefix(line, "sandbox     bwrap"),
			name == "runs" && !strings.HasPrefix(line, "runs        a: "),
			name == "reason" && !strings.HasPrefix(line, "reason      x[U+000A]"):
			t.Errorf("a forged fact: %q", line)
		}
	}
}

// What is allowed in a sandbox is not allowed without one, nor for another script.
func TestApprovalIsBoundToSandboxAndScripts(t *testing.T) {
	r := Request{Tag: "@exec:sh", Detail: Detail{Command: "sh x.sh"}, Workdir: "/ws", Sandbox: "bwrap",
		Scripts: []Script{{Path: "/ws/x.sh", SHA256: "00"}}}
	hashes := map[string]string{}
	for name, change := range map[string]func(*Request){
		"as it is": func(*Request) {}, "no sandbox": func(r *Request) { r.Sandbox = NoSandbox },
		"another script": func(r *Request) { r.Scripts = []Script{{Path: "/ws/x.sh", SHA256: "01"}} },
		"no script":      func(r *Request) { r.Scripts = nil },
	} {
		one := r
		change(&one)
		sha := one.SHA256("a")
		if other, ok := hashes[sha]; ok {
			t.Errorf("%q and %q are one request", name, other)
		}
		hashes[sha] = name
	}

	landlock := r
	landlock.Sandbox = "landlock"
	if landlock.SHA256("a") != r.SHA256("a") {
		t.Error("another sandbox that works is another request")
	}
}
