package email

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-message/mail"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"daycare/connectors/chat"
	"daycare/connectors/connectortest"
	"daycare/engine"
	"daycare/engine/message"
)

var (
	_ engine.Connector     = (*Connector)(nil)
	_ chat.Platform        = (*Connector)(nil)
	_ chat.DirectMessenger = (*Connector)(nil)
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConnector(t *testing.T) {
	connectortest.Run(t, func(t *testing.T) connectortest.Harness {
		s := newServers(t)
		host := chat.Host{Waiting: &s.waiting}
		stranger := func(m connectortest.Message) string {
			return strings.ReplaceAll(letter(m.Key, m.Text), "example.org", "evil.example")
		}
		return connectortest.Harness{
			New:   func(t *testing.T, log *slog.Logger) engine.Connector { return testConnector(t, s, host, log) },
			Offer: s.offer,
			Other: func(ctx context.Context, m connectortest.Message) {
				s.seen(ctx, s.arrive(strings.Replace(letter(m.Key, m.Text), "Ada <Ada@", "Bob <bob@", 1)))
			},
			Forge: func(ctx context.Context, m connectortest.Message) {
				forged := strings.Replace(letter("forged", m.Text), "dmarc=pass", "dmarc=fail", 1)
				for _, raw := range []string{forged, stranger(m)} {
					s.seen(ctx, s.arrive(raw))
				}
			},
			Strangers: &connectortest.Strangers{Host: &host, Told: s.received,
				Write: func(ctx context.Context, m connectortest.Message) { s.seen(ctx, s.arrive(stranger(m))) }},
			To: []message.Address{{Connector: "email", ChannelID: "ada@example.org"},
				{Connector: "email", ChannelID: "bob@example.org"}},
			Sent:    func() []connectortest.Sent { return answers(s) },
			Fault:   s.misbehave,
			Revoke:  s.revoke,
			Unable:  []connectortest.Fault{connectortest.Busy, connectortest.Forget},
			Secrets: []string{canary},
		}
	})
}

// answers are the mails without notices to the owner.
func answers(s *servers) (all []connectortest.Sent) {
	for _, m := range s.received() {
		if !strings.HasPrefix(m.Key, "notice.") {
			all = append(all, m)
		}
	}
	return all
}

func testConnector(t *testing.T, s *servers, host chat.Host, log *slog.Logger) *Connector {
	t.Helper()
	c, err := New(Options{Settings: chat.Settings{ID: "email", Allow: []string{"Ada@example.org", "bob@example.org"}},
		Address: "bot@example.com", IMAP: s.imap, SMTP: s.smtp, Plaintext: true,
		Authserv: "mx.example.com"}, canary, host, log)
	if err != nil {
		t.Fatal(err)
	}
	c.pause = time.Millisecond

	return c
}

func TestVouched(t *testing.T) {
	for _, test := range []struct {
		results string
		want    bool
	}{
		{"mx.example.com; dmarc=pass header.from=example.org", true},
		{"MX.example.com 1; spf=fail; dmarc=pass (p=NONE; sp=x) header.from=Example.org", true},
		{"mx.example.com; dkim=pass header.d=example.org", true},
		{"mx.example.com; dkim=pass header.i=@example.org", true},
		{"mx.example.com; dkim=pass header.i=@evil.example header.d=example.org", true},
		{"mx.example.com; dkim=pass header.i=@example.org header.d=evil.example", false},
		{"mx.example.com; dmarc=fail header.from=example.org; dkim=fail header.d=example.org", false},
		{"mx.example.com; dmarc=pass header.from=evil.example", false},
		{"mx.example.com; dkim=pass header.d=evil.example", false},
		{"mx.example.com; dkim=pass header.d=org", false},
		{"mx.example.com; dkim=pass header.d=ample.org", false},
		{"mx.example.com; spf=pass smtp.mailfrom=example.org", false},
		{"mx.example.com; none", false},
		{"mx.evil.example; dmarc=pass header.from=example.org", false},
		{"mx.example.com.evil.example; dmarc=pass header.from=example.org", false},
		{"mx.example.com (; dmarc=pass header.from=example.org", false},
		{`mx.example.com; x="; dmarc=pass header.from=example.org"`, false},
		{"mx.example.com; dmarc=fail\nAuthentication-Results: mx.example.com; dmarc=pass header.from=example.org", false},
		{`mx.example.com; dkim=pass header.d="example.org"`, true},
		{`mx.example.com; dkim=fail reason="no \"; dmarc=pass header.from=example.org"`, false},
		{`mx.example.com; dkim=fail reason="(x"; dmarc=pass header.from=example.org; y=")"`, true},
		{"mx.example.com; spf=pass (a (b) c); dmarc=pass header.from=example.org", true},
		{"mx.example.com; spf=pass (a (b; dmarc=pass header.from=example.org) c)", false},
		{"mx.example.com; spf=pass :); dmarc=pass header.from=example.org", true},
		{`mx.example.com; (\)) dmarc=pass header.from=example.org`, true},
		{"mx.example.com; ; dmarc=pass header.from=example.org", true},
		{"mx.example.com; ;", false},
		{`mx.example.com; "dmarc=pa ss" header.from=example.org`, false},
		{"; dmarc=pass header.from=example.org", false},
		{"", false},
	} {
		r, err := mail.CreateReader(strings.NewReader("Authentication-Results: " +
			strings.ReplaceAll(test.results, "\n", "\r\n") + "\r\n\r\nx"))
		if err != nil {
			t.Fatal(err)
		}
		if got := vouched(r.Header, "mx.example.com", "ada@example.org"); got != test.want {
			t.Errorf("vouched(%q) = %v, want %v", test.results, got, test.want)
		}
	}

	for pair, want := range map[[2]string]bool{{"example.org", "example.org"}: true, {"mail.example.org", "example.org"}: true,
		{"example.org", "mail.example.org"}: false, {"example.org", "org"}: false, {"badexample.org", "example.org"}: false} {
		if got := aligned(pair[0], pair[1]); got != want {
			t.Errorf("a mail of %s signed by %s: %v, want %v", pair[0], pair[1], got, want)
		}
	}
}

func TestRead(t *testing.T) {
	c := testConnector(t, newServers(t), chat.Host{}, slog.New(slog.DiscardHandler))
	raw := `Authentication-Results: mx.example.com; dmarc=pass header.from=example.org
From: =?utf-8?q?Ada_L=C3=B6velace?= <Ada@Example.org>
Subject: AW: =?iso-8859-1?q?Gr=FC=DFe?=
Message-ID: <2@x>
In-Reply-To: <1@y>
References: <0@z> <1@y>
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: multipart/alternative; boundary=c

--c
Content-Type: text/plain; charset=iso-8859-1
Content-Transfer-Encoding: quoted-printable

Gr=FC=DFe!

On Friday, daycare wrote:
> what is it?
> tell me
--c
Content-Type: text/html

<p>no</p>
--c--
--b
Content-Type: text/csv
Content-Disposition: attachment; filename="a.csv"
Content-Transfer-Encoding: base64

MSwy
--b--
`
	p, err := c.read([]byte(strings.ReplaceAll(raw, "\n", "\r\n")), "1.2")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, f := range p.Files {
		body, _ := f.Open(t.Context())
		var b bytes.Buffer
		b.ReadFrom(body)
		files = append(files, f.Name+": "+b.String())
	}
	p.Files = nil
	want := chat.Post{Key: "2@x", MessageID: "2@x", ReplyTo: "1@y", Sender: "Ada Lövelace", Text: "Grüße!",
		From: message.Address{ChannelID: "ada@example.org", UserID: "ada@example.org", ThreadID: "0@z Grüße"}}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("post (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a.csv: 1,2"}, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	page := "Authentication-Results: mx.example.com; dmarc=pass header.from=example.org\r\nFrom: " +
		"ada@example.org\r\nSubject: News\r\nContent-Type: text/html\r\n\r\n<style>x{}</style><p>a &amp; b<br>c</p>"
	if p, err := c.read([]byte(page), "1.3"); err != nil || p.Text != "Subject: News\n\na & b\nc" || p.Key != "1.3" {
		t.Errorf("read HTML = %q %q, %v", p.Text, p.Key, err)
	}
	for _, bad := range []string{"Auto-Submitted: auto-replied", "Precedence: bulk", "List-Id: <l>", "Return-Path: <>"} {
		if _, err := c.read([]byte(bad+"\r\n"+page), "1.4"); err == nil {
			t.Errorf("a mail with %q is taken, want it passed over", bad)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("From: a@b\r\n\r\nx"))
	f.Add([]byte("From: a@b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n\r\nx\r\n--c--"))
	c := &Connector{o: Options{Address: "bot@example.com", TrustFrom: true}}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if p, err := c.read(raw, "1.1"); err == nil && (p.From.UserID == "" || p.Key == "") {
			t.Errorf("%q is read as %+v, want a sender and a key", raw, p)
		}
	})
}

func TestAnswer(t *testing.T) {
	s := newServers(t)
	c := testConnector(t, s, chat.Host{Waiting: &s.waiting}, slog.New(slog.DiscardHandler))
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("1,2"), 0o600); err != nil {
		t.Fatal(err)
	}

	out := message.Outgoing{ID: "out1", Parts: 1, ReplyTo: "2@x", Text: "**bold** <script>\n\n| a |\n|---|\n| 1 |",
		To:    message.Address{Connector: "email", ChannelID: "ada@example.org", ThreadID: "0@z Grüße"},
		Files: []message.File{{Name: "a.csv", MimeType: "text/csv", Path: path}}}
	if _, err := c.Send(t.Context(), out); err != nil {
		t.Fatal(err)
	}

	r, err := mail.CreateReader(bytes.NewReader(s.last))
	if err != nil {
		t.Fatal(err)
	}
	subject, _ := r.Header.Subject()
	id, _ := r.Header.MessageID()
	refs, _ := r.Header.MsgIDList("References")
	got := fmt.Sprint(subject, " ", id, " ", refs, " ", r.Header.Get("Auto-Submitted"))
	if want := "Re: Grüße out1@example.com [0@z 2@x] auto-replied"; got != want {
		t.Errorf("header %q, want %q", got, want)
	}

	all := string(s.last)
	for _, want := range []string{"text/plain", "text/html", "text/csv", "<bot@example.com>",
		"<strong>bold</strong> &lt;script&gt;", "a.csv"} {
		if !strings.Contains(all, want) {
			t.Errorf("the mail lacks %q:\n%s", want, all)
		}
	}

	if date, err := r.Header.Date(); err != nil || time.Since(date) > time.Hour {
		t.Errorf("it is of %v, %v", date, err)
	}
	if to, ok := c.Direct("ada@example.org"); !ok || to.ChannelID != "ada@example.org" {
		t.Errorf("the owner is notified at %+v, %v", to, ok)
	}

	sent := len(s.received())
	out.Files[0].Path += "gone"
	var no *message.NotSent
	if _, err := c.Send(t.Context(), out); !errors.As(err, &no) || !no.Final || len(s.received()) != sent {
		t.Errorf("a file that is gone: %v, want that trying again is no use", err)
	}
}

func TestProbe(t *testing.T) {
	s := newServers(t)
	c := testConnector(t, s, chat.Host{Waiting: &s.waiting}, slog.New(slog.DiscardHandler))
	if verdict, err := c.Probe(t.Context()); err != nil || !strings.Contains(verdict, "both servers accepted the login") ||
		!strings.Contains(verdict, "at once") {
		t.Errorf("Probe = %q, %v", verdict, err)
	}
	s.smtp, c.o.SMTP = c.o.SMTP, "127.0.0.1:1"
	if _, err := c.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "connect to 127.0.0.1:1") {
		t.Errorf("Probe without an SMTP server = %v", err)
	}
	old := scripted(t, Options{IMAP: imapServer(nil).listen(t), SMTP: s.smtp, User: "bot@example.com", Plaintext: true})
	if verdict, err := old.Probe(t.Context()); err != nil || !strings.Contains(verdict, "is polled for new mail every half minute") {
		t.Errorf("Probe of a server without IDLE = %q, %v", verdict, err)
	}
	c.password = "wrong"
	if _, err := c.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "auth set email") {
		t.Errorf("Probe = %v, want what to do", err)
	}
	if err := c.Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "auth set email") {
		t.Errorf("Run = %v, want what to do", err)
	}
}

func TestValidate(t *testing.T) {
	good := Options{Settings: chat.Settings{ID: "email"}, Address: "a@b.c", IMAP: "x:1", SMTP: "x:2", Authserv: "mx"}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}

	for _, change := range []func(*Options){
		func(o *Options) { o.Address = "A <a@b>" }, func(o *Options) { o.IMAP = "x" }, func(o *Options) { o.SMTP = ":25" },
		func(o *Options) { o.SMTP = "x:" }, func(o *Options) { o.Authserv = "" },
		func(o *Options) { o.Allow = []string{"@b.c"} }, func(o *Options) { o.ID = "" },
	} {
		o := good
		change(&o)
		if o.Validate() == nil {
			t.Errorf("%+v is valid, want an error", o)
		}
		if _, err := New(o, canary, chat.Host{}, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%+v makes a connector", o)
		}
	}

	if _, err := New(good, "", chat.Host{}, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "auth set email") {
		t.Errorf("no password: %v, want what to do", err)
	}
	good.Authserv, good.TrustFrom = "", true
	if c, err := New(good, canary, chat.Host{}, slog.New(slog.DiscardHandler)); err != nil || c.o.User != "a@b.c" ||
		c.o.Mailbox != "INBOX" {
		t.Errorf("without a user and a mailbox: %v, want the address and INBOX", err)
	}
	good.User, good.Mailbox = "me", "Agent"
	if c, err := New(good, canary, chat.Host{}, slog.New(slog.DiscardHandler)); err != nil || c.o.User != "me" || c.o.Mailbox != "Agent" {
		t.Errorf("with a user and a mailbox: %v", err)
	}
}

// A mail to itself arrives, is deleted, and is nothing for the running connector.
func TestLoop(t *testing.T) {
	s, e := newServers(t), &connectortest.Taker{}
	c := testConnector(t, s, chat.Host{Waiting: &s.waiting}, slog.New(slog.DiscardHandler))
	connectortest.Serve(t, c, e.Deliver)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if verdict, err := c.Loop(ctx); err != nil || verdict != "bot@example.com sent a mail to itself and found it" {
		t.Fatalf("Loop = %q, %v", verdict, err)
	}
	s.offer(ctx, connectortest.Message{Key: "after", Text: "after"})
	if got := e.Texts(); len(got) != 1 || got[0] != "after" {
		t.Errorf("taken are %q", got)
	}
	left, err := s.watcher.UIDSearch(&imap.SearchCriteria{NotFlag: []imap.Flag{imap.FlagDeleted}}, nil).Wait()
	if err != nil || len(left.AllUIDs()) != 1 {
		t.Errorf("%v are left in the mailbox, %v", left.AllUIDs(), err)
	}
	s.misbehave(connectortest.Gone)
	if _, err := c.Loop(ctx); err == nil || strings.Contains(err.Error(), canary) {
		t.Errorf("Loop over a server that refuses it = %v", err)
	}
}
