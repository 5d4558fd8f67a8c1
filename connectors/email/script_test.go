package email

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/emersion/go-imap/v2/imapclient"

	"daycare/connectors/chat"
	"daycare/engine/message"
)

// A script is a server that answers each command as a test says, and keeps what it heard.
type script struct {
	greeting string
	says     map[string]string // by the first word, or words; "bye" ends the connection

	mu    sync.Mutex
	heard []string
}

// serve answers the commands of one connection. @ in an answer is the tag of a command.
func (s *script) serve(conn net.Conn) {
	defer conn.Close()
	fmt.Fprintf(conn, "%s\r\n", s.greeting)
	tag := ""
	for in := bufio.NewScanner(conn); in.Scan(); {
		line := in.Text()
		s.mu.Lock()
		s.heard = append(s.heard, line)
		s.mu.Unlock()
		first, command, tagged := strings.Cut(line, " ")
		if tagged { // DONE has none
			tag = first
		}

		for begin, answer := range s.says {
			if !strings.HasPrefix(command, begin) && !strings.HasPrefix(line, begin) {
				continue
			}
			answer, ends := strings.CutSuffix(answer, "bye")
			if answer != "" {
				answer = strings.ReplaceAll(strings.TrimSuffix(answer, "\n"), "\n", "\r\n")
				fmt.Fprintf(conn, "%s\r\n", strings.ReplaceAll(answer, "@", tag))
			}
			if ends {
				return
			}
		}
	}
}

// listen has a script answer connections until the test ends.
func (s *script) listen(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { s.serve(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		serving.Wait()
	})

	return l.Addr().String()
}

// has reports whether a line was heard that contains a text.
func (s *script) has(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(strings.Join(s.heard, "\n"), text)
}

// imapServer is a mailbox with one mail, where a test says nothing else.
func imapServer(says map[string]string) *script {
	s := &script{greeting: "* OK [CAPABILITY IMAP4rev1] ready", says: map[string]string{
		"LOGIN": "@ OK [CAPABILITY IMAP4rev1] in", "SELECT": "* 1 EXISTS\n* OK [UIDVALIDITY 7] ok\n@ OK selected",
		"UID SEARCH": "* SEARCH 5\n@ OK", "UID FETCH 5 (UID RFC822.SIZE)": "* 1 FETCH (UID 5 RFC822.SIZE 9)\n@ OK",
		"UID FETCH 5 (UID BODY": "* 1 FETCH (UID 5 BODY[] \"\")\n@ OK", "UID STORE": "@ OK", "NOOP": "@ OK", "LOGOUT": "@ OK",
	}}
	for command, answer := range says {
		s.says[command] = answer
	}

	return s
}

// What an IMAP server refuses is reported with what to do about it, never with the password,
// and a mail is marked as read only when it could be read, or can never be.
func TestWhatAMailboxAnswers(t *testing.T) {
	const read, headers, body = "UID STORE 5 +FLAGS.SILENT (\\Seen)", "UID FETCH 5 (UID RFC822.SIZE)", "UID FETCH 5 (UID BODY"
	for name, tt := range map[string]struct {
		says  map[string]string
		wrong string
		read  bool
	}{
		"a wrong password": {map[string]string{"LOGIN": "@ NO " + canary + " is wrong"},
			"set the password with: daycare auth set email", false},
		"no login":         {map[string]string{"LOGIN": "bye"}, "log in to 127.0.0.1:", false},
		"no such mailbox":  {map[string]string{"SELECT": "@ NO none"}, "open mailbox INBOX: ", false},
		"no search":        {map[string]string{"UID SEARCH": "@ NO busy"}, "search for mail: ", false},
		"no headers":       {map[string]string{headers: "@ NO busy"}, "read mail headers: ", false},
		"no mail":          {map[string]string{body: "@ NO busy"}, "fetch mail: ", false},
		"no mark":          {map[string]string{"UID STORE": "@ NO " + canary}, "mark mail as seen: ", true},
		"removed before":   {map[string]string{headers: "@ OK", "NOOP": "bye"}, "", true},
		"removed meantime": {map[string]string{body: "@ OK", "NOOP": "bye"}, "", true},
		"too large":        {map[string]string{headers: "* 1 FETCH (UID 5 RFC822.SIZE 26214401)\n@ OK", body: "@ NO large"}, "", true},
		"nearly too large": {map[string]string{headers: "* 1 FETCH (UID 5 RFC822.SIZE 26214400)\n@ OK", body: "@ NO large"},
			"fetch mail: ", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := imapServer(tt.says)
			c := scripted(t, Options{IMAP: s.listen(t), SMTP: "127.0.0.1:1", Plaintext: true})
			box, err := c.open(t.Context())
			if err == nil {
				err = c.takeAll(t.Context(), box, nil)
				box.Close()
			}
			err = c.clean(err)
			if (err != nil) != (tt.wrong != "") || err != nil && !strings.Contains(err.Error(), tt.wrong) ||
				err != nil && strings.Contains(err.Error(), canary) {
				t.Errorf("%v, want %q", err, tt.wrong)
			}
			if s.has(read) != tt.read {
				t.Errorf("it heard %q, want that the mail is marked: %v", s.heard, tt.read)
			}
		})
	}
}

func scripted(t *testing.T, o Options) *Connector {
	t.Helper()
	o.ID, o.Address, o.TrustFrom = "email", "bot@example.com", true
	c, err := New(o, canary, chat.Host{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Where a server cannot report mail it is asked every half minute, and one that can is asked
// anew before it ends the IDLE. A connection that ends meanwhile is an error.
func TestWaitForMail(t *testing.T) {
	for name, tt := range map[string]struct {
		idle  string // what the server says to it; "": it has no IDLE
		stop  bool
		after time.Duration
		wrong string
	}{
		"polled":          {"", false, askEvery, ""},
		"polled, stopped": {"", true, 0, ""},
		"idle":            {"+ idling", false, idleTime, ""},
		"idle, stopped":   {"+ idling", true, 0, ""},
		"mail at once":    {"+ idling\n* 2 EXISTS", false, 0, ""},
		"idle refused":    {"@ NO busy", false, 0, "wait for mail: "},
		"no idle":         {"bye", false, 0, "wait for mail: "},
		"ended in idle":   {"+ idling\nbye", false, 0, "wait for mail: "},
	} {
		synctest.Test(t, func(t *testing.T) {
			capability := "IMAP4rev1"
			if tt.idle != "" {
				capability += " IDLE"
			}
			s := imapServer(map[string]string{"IDLE": tt.idle, "DONE": "@ OK done"})
			s.greeting = "* PREAUTH [CAPABILITY " + capability + "] in"
			ours, theirs := net.Pipe()
			go s.serve(theirs)
			box := &mailbox{changed: make(chan struct{}, 1)}
			box.Client = imapclient.New(ours, &imapclient.Options{UnilateralDataHandler: &imapclient.UnilateralDataHandler{
				Mailbox: func(*imapclient.UnilateralDataMailbox) { box.changed <- struct{}{} }}})
			defer box.Close()
			if err := box.WaitGreeting(); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.stop {
				cancel()
			}
			begun := time.Now()
			err := box.wait(ctx)
			if (err != nil) != (tt.wrong != "") || err != nil && !strings.Contains(err.Error(), tt.wrong) ||
				time.Since(begun) != tt.after {
				t.Errorf("%s: wait = %v after %v, want %q after %v", name, err, time.Since(begun), tt.wrong, tt.after)
			}
			if s.has("NOOP") != (tt.idle == "" && !tt.stop) {
				t.Errorf("%s: the server heard %q", name, s.heard)
			}
		})
	}
}

// smtpServer takes mail without a login, where a test says nothing else.
func smtpServer(says map[string]string) *script {
	s := &script{greeting: "220 ready", says: map[string]string{"EHLO": "250 hello", "MAIL": "250 ok", "RCPT": "250 ok", "DATA": "354 go",
		".": "250 taken", "*": "501 ended", "QUIT": "221 bye"}}
	for command, answer := range says {
		s.says[command] = answer
	}

	return s
}

// The password is sent over TLS alone, but to a server of which the settings say plaintext.
func TestTheWayToAServer(t *testing.T) {
	for name, tt := range map[string]struct {
		plaintext bool
		says      map[string]string
		wrong     string // "": it is sent
		login     bool
	}{
		"plaintext without logins": {true, nil, "", false},
		"plaintext with logins":    {true, map[string]string{"EHLO": "250-hello\n250 AUTH PLAIN", "AUTH": "235 in"}, "", true},
		"a wrong password": {true, map[string]string{"EHLO": "250-hello\n250 AUTH PLAIN", "AUTH": "535 not " + canary},
			"log in to 127.0.0.1:", true},
		"no TLS":    {false, map[string]string{"EHLO": "250-hello\n250 AUTH PLAIN"}, "secure the connection to 127.0.0.1:", false},
		"bad TLS":   {false, map[string]string{"EHLO": "250 STARTTLS", "STARTTLS": "220 go"}, "secure the connection to 127.0.0.1:", false},
		"no answer": {true, map[string]string{"EHLO": "bye"}, "send mail: ", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := smtpServer(tt.says)
			c := scripted(t, Options{IMAP: "127.0.0.1:1", SMTP: s.listen(t), Plaintext: tt.plaintext})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := c.Send(ctx, message.Outgoing{To: message.Address{ChannelID: "ada@example.org"}, Text: "hi"})
			if (err != nil) != (tt.wrong != "") || err != nil && !strings.Contains(err.Error(), tt.wrong) ||
				err != nil && strings.Contains(err.Error(), canary) {
				t.Errorf("Send = %v, want %q", err, tt.wrong)
			}
			if !s.has("EHLO") || s.has("AUTH") != tt.login {
				t.Errorf("the server heard %q, want a login: %v", s.heard, tt.login)
			}
		})
	}

	s := imapServer(nil)
	c := scripted(t, Options{IMAP: s.listen(t), SMTP: "127.0.0.1:1"})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := c.open(ctx); err == nil || !strings.Contains(err.Error(), "connect to ") || s.has("LOGIN") {
		t.Errorf("an IMAP server without TLS: %v, it heard %q", err, s.heard)
	}
}

// A server that takes no mail of ours for good is told apart from one that may tomorrow, and
// from one that is wrong about our login.
func TestWhatIsTriedAgain(t *testing.T) {
	for code, final := range map[int]bool{421: false, 451: false, 500: false, 504: false, 530: false, 535: false, 538: false,
		550: true, 552: true, 554: true} {
		s := smtpServer(map[string]string{"RCPT": fmt.Sprint(code, " no")})
		c := scripted(t, Options{IMAP: "127.0.0.1:1", SMTP: s.listen(t), Plaintext: true})
		to := message.Address{ChannelID: "ada@example.org"}
		_, err := c.Send(t.Context(), message.Outgoing{To: to, Text: "hi"})
		var no *message.NotSent
		if got := errors.As(err, &no) && no.Final; err == nil || got != final {
			t.Errorf("code %d: %v, final %v; want %v", code, err, got, final)
		}
		c.o.SMTP = smtpServer(map[string]string{"RCPT": fmt.Sprint(code, " no ", canary)}).listen(t)
		if err := c.Say(t.Context(), to, "", "hi"); err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("code %d: Say = %v, want an error without the password", code, err)
		}
		_, err = c.Send(t.Context(), message.Outgoing{To: to, Text: "hi"})
		no = nil
		if got := errors.As(err, &no) && no.Final; got != final || err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("code %d with the password: %v, final %v; want %v", code, err, got, final)
		}
	}
}

// A file that cannot be read is not in the mail, and neither is the rest: it is not tried again.
func TestFilesThatCannotBeSent(t *testing.T) {
	s := smtpServer(nil)
	c := scripted(t, Options{IMAP: "127.0.0.1:1", SMTP: s.listen(t), Plaintext: true})
	to := message.Address{ChannelID: "ada@example.org"}
	for what, path := range map[string]string{"none": filepath.Join(t.TempDir(), "none"), "a folder": t.TempDir()} {
		file := message.File{Name: "a.txt", MimeType: "text/plain", Path: path}
		_, err := c.Send(t.Context(), message.Outgoing{To: to, Text: "hi", Files: []message.File{file}})
		var no *message.NotSent
		if !errors.As(err, &no) || !no.Final || s.has("MAIL") {
			t.Errorf("%s: %v; the server heard %q", what, err, s.heard)
		}
	}
}
