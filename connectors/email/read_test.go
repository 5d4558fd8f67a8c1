package email

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/message"
)

// What is in a mail becomes a message: its text, without what was quoted, and its files; who
// wrote it, and the thread that it belongs to. Mail of programs, of ourselves, and of nobody
// or several people is none.
func TestWhatAMailBecomes(t *testing.T) {
	c := scripted(t, Options{IMAP: "x:1", SMTP: "x:2", Plaintext: true})
	x := func(n int) string { return strings.Repeat("x", n) }
	parts := func(all ...string) string {
		return "Content-Type: multipart/mixed; boundary=b\n\n--b\n" + strings.Join(all, "\n--b\n") + "\n--b--\n"
	}
	for name, tt := range map[string]struct {
		mail string // behind its From
		want string // sender, key, thread, text and files; "": it is passed over
	}{
		"without anything":    {"\nhi", `Ada 1.2 " " hi`},
		"a program's":         {"X-Auto-Response-Suppress: All\n\nhi", ""},
		"a person's":          {"Auto-Submitted: no\nPrecedence: first-class\nReturn-Path: <ada@example.org>\n\nhi", `Ada 1.2 " " hi`},
		"in a thread":         {"Message-ID: <m@x>\nIn-Reply-To: <r@x>\nSubject: RE: s\n\nhi", `Ada m@x "r@x s" hi`},
		"deep in a thread":    {"Message-ID: <m@x>\nIn-Reply-To: <r@x>\nReferences: <0@x> <r@x>\n\nhi", `Ada m@x "0@x " hi`},
		"a thread's first":    {"Message-ID: <m@x>\nSubject: s\n\nhi", "Ada m@x \"m@x s\" Subject: s\n\nhi"},
		"a command":           {"Message-ID: <m@x>\nSubject: s\n\n/reset", `Ada m@x "m@x s" /reset`},
		"a long id":           {"Message-ID: <" + x(198) + "@x>\n\nhi", fmt.Sprintf("Ada %s@x %q hi", x(198), x(198)+"@x ")},
		"too long an id":      {"Message-ID: <" + x(199) + "@x>\n\nhi", fmt.Sprintf("Ada 64 %q hi", x(199)+"@x ")},
		"HTML alone":          {"Content-Type: text/html\n\n<b>hi</b>\n<!-- no -->", `Ada 1.2 " " hi`},
		"HTML beside nothing": {parts("\n \n", "Content-Type: text/html\n\nhi"), `Ada 1.2 " " hi`},
		"a long text":         {"\n" + x(maxText), `Ada 1.2 " " 524288 x`},
		"too long a text":     {"\n" + x(maxText+1), `Ada 1.2 " "  [part-text.plain 524289]`},
		"too long HTML":       {"Content-Type: text/html\n\n" + x(maxText+1), `Ada 1.2 " "  [part-text.html 524289]`},
		"parts without names": {parts("\nhi", "Content-Type: image/png\nContent-Disposition: inline\n\nPNG",
			"Content-Type: image/png\nContent-Disposition: attachment\n\nPNG"),
			`Ada 1.2 " " hi [part-image.png 3] [attachment 3]`},
		"a part with a name": {parts("Content-Type: image/png; name=a.png\n\nPNG"), `Ada 1.2 " "  [a.png 3]`},
		"a part that is ended": {"Content-Type: multipart/mixed; boundary=b\n\n--b\n\nhi\n--b\n\nmore",
			"Ada 1.2 \" \" hi\nmore\n[a part of this mail could not be read]"},
		"a part that is none": {parts("Content-Transfer-Encoding: base64\n\n*", "\nhi"),
			"Ada 1.2 \" \" hi\n[a part of this mail could not be read]"},
		"a file that breaks off": {parts("Content-Type: text/html\n\n<b>hi</b>",
			"Content-Type: image/png; name=a.png\nContent-Transfer-Encoding: base64\n\nUE5"),
			"Ada 1.2 \" \" hi\n[a part of this mail could not be read]"},
		"a text that breaks off": {"Content-Transfer-Encoding: base64\n\naGkgdGhlcmUhaGk",
			"Ada 1.2 \" \" hi there!\n[a part of this mail could not be read]"},
		"an unknown encoding": {"Content-Transfer-Encoding: 8-bit\n\nhi", `Ada 1.2 " " hi`},
		"a part in an unknown encoding": {parts("Content-Transfer-Encoding: utf-8\n\nhi", "Content-Type: image/png; name=a.png\n\nPNG"),
			`Ada 1.2 " " hi [a.png 3]`},
		"an unknown charset": {"Content-Type: text/plain; charset=klingon\n\nhi", `Ada 1.2 " " hi`},
	} {
		p, err := c.read([]byte(strings.ReplaceAll("From: Ada <Ada@example.org>\n"+tt.mail, "\n", "\r\n")), "1.2")
		if len(p.Key) == 64 {
			p.Key = "64"
		}
		if len(p.Text) > 1000 {
			p.Text = fmt.Sprint(len(p.Text), " ", p.Text[:1])
		}
		got := fmt.Sprintf("%s %s %q %s", p.Sender, p.Key, p.From.ThreadID, p.Text)
		for _, f := range p.Files {
			body, err := f.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if content, _ := io.ReadAll(body); int64(len(content)) != f.Size {
				t.Errorf("%s: the file %s has %d bytes", name, f.Name, len(content))
			}
			got += fmt.Sprintf(" [%s %d]", f.Name, f.Size)
		}
		if (err == nil) != (tt.want != "") || err == nil && got != tt.want {
			t.Errorf("%s becomes\n%q, %v, want\n%q", name, got, err, tt.want)
		}
	}

	for from, want := range map[string]string{"ada@Example.org": "ada@example.org", "Ada@x, Eve@x": "", "BOT@example.com": "",
		"nobody": ""} {
		p, err := c.read([]byte("From: "+from+"\r\n\r\nhi"), "1.2")
		if (err == nil) != (want != "") || p.Sender != want || p.From.UserID != want {
			t.Errorf("a mail from %s is of %q, %v, want %q", from, p.Sender, err, want)
		}
	}
	if _, err := c.read([]byte("no header\r\n\r\nhi"), "1.2"); err == nil || !strings.Contains(err.Error(), "read mail: ") {
		t.Errorf("a mail that cannot be read: %v", err)
	}
	if _, err := c.read([]byte("From: ada@x\r\nContent-Type: multipart/mixed\r\n\r\nhi"), "1.2"); err != nil {
		t.Errorf("a mail of parts without a boundary: %v", err)
	}
}

// What was quoted at the end is left out with the line that introduces it; what is said
// below a quotation is an answer, and stays.
func TestUnquoted(t *testing.T) {
	for text, want := range map[string]string{
		"hi\n> a\n> b\n": "hi", "hi\r\n\r\nAda wrote:\r\n\r\n> a\r\n": "hi", "hi\nOn Friday,\nAda wrote:\n> a": "hi", "Ada wrote:\n> a": "",
		"hi\nSo On\nAda wrote:\n> a": "hi\nSo On", "> a\nno": "> a\nno", "two things:\n\n": "two things:", "hi\n> a\n\n": "hi",
		"> a": "", "": "",
		"hi\nbye\n> a": "hi\nbye",
	} {
		if got := unquoted(text); got != want {
			t.Errorf("%q without what is quoted is %q, want %q", text, got, want)
		}
	}
	for subject, want := range map[string]string{"s": "s", "Re: s": "s", "AW: re : Fwd:s": "s", "re": "re", "More: s": "More: s",
		"Re:": "", "": ""} {
		if got := bare(subject); got != want {
			t.Errorf("the subject %q is about %q, want %q", subject, got, want)
		}
	}
}

// The subject and the thread of an answer are those of the mail that it answers.
func TestHeaders(t *testing.T) {
	c := scripted(t, Options{IMAP: "x:1", SMTP: "x:2", Plaintext: true})
	for name, tt := range map[string]struct{ thread, replyTo, want string }{
		"in a thread": {"0@x a subject", "1@x", "Re: a subject [1@x] [0@x 1@x]"}, "to its first": {"1@x s", "1@x", "Re: s [1@x] [1@x]"},
		"without a subject": {"0@x ", "1@x", "Re: your mail [1@x] [0@x 1@x]"}, "by itself": {"", "", "A message from your agent [] []"},
		"in a thread, to nothing": {"0@x s", "", "Re: s [] [0@x]"}, "to a mail without a thread": {"", "1@x", "Re: your mail [1@x] [1@x]"},
	} {
		h := c.o.header("id@x", message.Outgoing{ReplyTo: tt.replyTo, To: message.Address{ChannelID: "ada@x", ThreadID: tt.thread}})
		subject, _ := h.Subject()
		reply, _ := h.MsgIDList("In-Reply-To")
		refs, _ := h.MsgIDList("References")
		to, _ := h.AddressList("To")
		if diff := cmp.Diff(tt.want, fmt.Sprint(subject, " ", reply, " ", refs)); diff != "" || len(to) != 1 || to[0].Address != "ada@x" {
			t.Errorf("%s, to %v (-want +got):\n%s", name, to, diff)
		}
	}
}

// A mail takes no more time and memory than its size explains, whatever it is made of.
func TestMailsAreReadInBounds(t *testing.T) {
	const head, begin = "From: x@y.z\r\n", "Content-Type: multipart/mixed; boundary=a\r\n\r\n"
	var nested strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&nested, "--%d\r\nContent-Type: multipart/a; boundary=%d\r\n\r\n", i, i+1)
	}
	large := "--a\r\nContent-Type: text/html\r\n\r\n" + strings.Repeat("a", maxText-1) + "\r\n"

	c := &Connector{o: Options{Address: "a@b.c", TrustFrom: true}}
	for name, mail := range map[string]string{
		"texts":   head + begin + strings.Repeat("--a\r\n\r\nx\r\n", 30_000),
		"files":   head + begin + strings.Repeat("--a\r\nContent-Type: a/b\r\n\r\nx\r\n", 30_000),
		"nested":  head + strings.Replace(begin, "=a", "=0", 1) + nested.String(),
		"large":   head + begin + strings.Repeat(large, 3),
		"unended": head + "Content-Type: text/html\r\n\r\n" + strings.Repeat("<script<!---->", 18_000),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		p, err := c.read([]byte(mail), "1")
		took := time.Since(start)
		runtime.ReadMemStats(&after)

		if err != nil || len(p.Text) > maxText+1000 || len(p.Files) > maxParts {
			t.Errorf("%s: a text of %d bytes, %d files, %v", name, len(p.Text), len(p.Files), err)
		}
		if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 50 || took > time.Minute {
			t.Errorf("%s: %d bytes take %d MB of memory, %s", name, len(mail), mb, took)
		}
	}

	for in, want := range map[string]string{
		"<style>a<!-- b</style>c<!-- d -->e": "ce",
		"<!--[if mso]><style>a</style>b-->c": "c",
		"<script><!-- a --></script>b<!-- c": "b<!-- c",
		"<head><title>a</title></head>b<p>c": "bc",
	} {
		if got := textOf(in); got != want {
			t.Errorf("%q is read as %q, want %q", in, got, want)
		}
	}
}
