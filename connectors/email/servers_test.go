package email

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"
	"github.com/emersion/go-message/mail"
	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"daycare/connectors/connectortest"
)

const canary = "canary+password/of=the mailbox"

// servers are an IMAP and an SMTP server in this process.
type servers struct {
	imap, smtp string // addresses
	user       *imapmemserver.User
	watcher    *imapclient.Client // looks at the mailbox as its owner would

	mu    sync.Mutex
	sent  []connectortest.Sent
	last  []byte
	fault connectortest.Fault
	calm  chan struct{}
	// revoked: the password is accepted no more.
	revoked bool
	conns   []net.Conn // of all that looked at mailboxes, the watcher first

	waiting connectortest.Keeper
}

// idling tells a client in IDLE also what happened just before, as servers do. The
// one in memory tells only what happens from then on, and a mail could stay unheard.
type idling struct {
	imapserver.Session
	s *servers
}

func (s idling) Login(user, password string) error {
	s.s.mu.Lock()
	defer s.s.mu.Unlock()
	if s.s.revoked {
		return imapserver.ErrAuthFailed
	}
	return s.Session.Login(user, password)
}

func (s idling) Idle(w *imapserver.UpdateWriter, stop <-chan struct{}) error {
	for {
		if err := s.Poll(w, true); err != nil {
			return err
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-stop:
			return nil
		}
	}
}

func newServers(t *testing.T) *servers {
	t.Helper()
	s := &servers{calm: make(chan struct{})}
	memory := imapmemserver.New()
	s.user = imapmemserver.NewUser("bot@example.com", canary)
	if err := s.user.Create("INBOX", nil); err != nil {
		t.Fatal(err)
	}

	memory.AddUser(s.user)
	quiet := log.New(io.Discard, "", 0)
	boxes := imapserver.New(&imapserver.Options{InsecureAuth: true, Logger: quiet,
		Caps: imap.CapSet{imap.CapIMAP4rev1: {}, imap.CapIdle: {}},
		NewSession: func(c *imapserver.Conn) (imapserver.Session, *imapserver.GreetingData, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.conns = append(s.conns, c.NetConn())
			return idling{memory.NewSession(), s}, nil, nil
		}})
	post := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return &session{s: s, conn: c}, nil }))
	post.AllowInsecureAuth, post.ErrorLog, post.Domain = true, quiet, "localhost"
	var serving sync.WaitGroup
	for address, serve := range map[*string]func(net.Listener) error{&s.imap: boxes.Serve, &s.smtp: post.Serve} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		*address = l.Addr().String()
		serving.Go(func() { serve(l) })
	}

	var err error
	if s.watcher, err = imapclient.DialInsecure(s.imap, nil); err == nil {
		err = s.watcher.Login("bot@example.com", canary).Wait()
	}
	if err == nil {
		_, err = s.watcher.Select("INBOX", &imap.SelectOptions{ReadOnly: true}).Wait()
	}
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		s.misbehave(connectortest.None)
		s.watcher.Close()
		boxes.Close()
		post.Close()
		serving.Wait()
	})

	return s
}

// revoke has the password accepted no more, or again.
func (s *servers) revoke(revoked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revoked = revoked
	for _, c := range s.conns[1:] {
		c.Close()
	}
}

// arrive puts a mail into the mailbox and returns its number.
func (s *servers) arrive(raw string) imap.UID {
	data, err := s.user.Append("INBOX", literal{strings.NewReader(strings.ReplaceAll(raw, "\n", "\r\n"))}, &imap.AppendOptions{})
	if err != nil {
		panic(err)
	}
	return data.UID
}

type literal struct{ *strings.Reader }

func (l literal) Size() int64 { return l.Reader.Size() }

// letter is a mail of Ada's that our own server vouches for.
func letter(id, text string) string {
	return fmt.Sprintf("Authentication-Results: mx.example.com; dmarc=pass header.from=example.org\nFrom: Ada "+
		"<Ada@example.org>\nTo: bot@example.com\nSubject: Re: hello\nMessage-ID: <%s@example.org>\nIn-Reply-To: "+
		"<first@example.com>\n\n%s\n", id, text)
}

// seen waits until a mail is marked.
func (s *servers) seen(ctx context.Context, uid imap.UID) bool {
	for ctx.Err() == nil {
		s.mu.Lock()
		_ = s.watcher.Noop().Wait()
		got, err := s.watcher.Fetch(imap.UIDSetNum(uid), &imap.FetchOptions{UID: true, Flags: true}).Collect()
		s.mu.Unlock()
		if err == nil && len(got) == 1 {
			for _, f := range got[0].Flags {
				if f == imap.FlagSeen {
					return true
				}
			}
		}

		select {
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
		}
	}

	return false
}

func (s *servers) offer(ctx context.Context, messages ...connectortest.Message) []bool {
	received := make([]bool, len(messages))
	uids := make([]imap.UID, len(messages))
	for i, m := range messages {
		uids[i] = s.arrive(letter(fmt.Sprintf("%x", m.Key), m.Text))
	}
	for i, uid := range uids {
		received[i] = s.seen(ctx, uid)
	}

	return received
}

func (s *servers) misbehave(f connectortest.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
	close(s.calm)
	s.calm = make(chan struct{})
}

func (s *servers) received() []connectortest.Sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]connectortest.Sent(nil), s.sent...)
}

// session is one SMTP connection.
type session struct {
	s    *servers
	conn *smtp.Conn
	in   bool
	own  bool // the mail is to the account itself
}

func (x *session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (x *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if x.in = user == "bot@example.com" && password == canary; !x.in {
			return &smtp.SMTPError{Code: 535, Message: "bad password: " + canary}
		}
		return nil
	}), nil
}

func (x *session) Mail(string, *smtp.MailOptions) error {
	if !x.in {
		return smtp.ErrAuthRequired
	}
	return nil
}

func (x *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	x.own = to == "bot@example.com"
	return nil
}
func (x *session) Reset()        {}
func (x *session) Logout() error { return nil }

func (x *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	x.s.mu.Lock()
	fault, calm := x.s.fault, x.s.calm
	x.s.mu.Unlock()

	switch fault {
	case connectortest.Broken:
		return &smtp.SMTPError{Code: 451, Message: "try later, " + canary}
	case connectortest.Gone:
		return &smtp.SMTPError{Code: 550, Message: "no such mailbox"}
	case connectortest.Stall:
		<-calm
		return errors.New("stalled")
	}

	if x.own {
		x.s.arrive(strings.ReplaceAll(string(raw), "\r\n", "\n"))
		return nil
	}
	got, err := mail.CreateReader(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	id, _ := got.Header.MessageID()
	part, err := got.NextPart()
	if err != nil {
		return err
	}

	text, _ := io.ReadAll(part.Body)
	x.s.mu.Lock()
	x.s.last = raw
	x.s.sent = append(x.s.sent, connectortest.Sent{Key: id, Text: strings.TrimSpace(string(text))})
	x.s.mu.Unlock()
	if fault == connectortest.Drop {
		x.conn.Conn().Close()
	}

	return nil
}
