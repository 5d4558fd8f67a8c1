package email

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"daycare/connectors/chat"
	"daycare/engine/message"
)

const (
	dialTime = 30 * time.Second
	askEvery = 30 * time.Second // where the server has no IDLE
	idleTime = 20 * time.Minute // servers may end an IDLE after 30
	maxMail  = 25 << 20         // bytes
)

// A mailbox is the mailbox, open.
type mailbox struct {
	*imapclient.Client
	changed  chan struct{} // receives when something happens in it
	validity uint32        // the numbers of mails are new when this is
}

// open connects to the mailbox.
func (c *Connector) open(ctx context.Context) (*mailbox, error) {
	conn, err := c.call(ctx, c.o.IMAP, true)
	if err != nil {
		return nil, err
	}
	hint := make(chan struct{}, 1)
	client := imapclient.New(conn, &imapclient.Options{UnilateralDataHandler: &imapclient.UnilateralDataHandler{
		Mailbox: func(*imapclient.UnilateralDataMailbox) {
			select {
			case hint <- struct{}{}:
			default:
			}
		},
	}})
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := client.Login(c.o.User, c.password).Wait(); err != nil {
		client.Close()
		var no *imap.Error
		if errors.As(err, &no) {
			return nil, fmt.Errorf("the IMAP server refused %s: %w\nset the password with: daycare auth set %s",
				c.o.User, c.clean(err), c.o.ID)
		}
		return nil, fmt.Errorf("log in to %s: %w", c.o.IMAP, c.clean(err))
	}

	selected, err := client.Select(c.o.Mailbox, nil).Wait()
	if err != nil {
		client.Close()
		return nil, fmt.Errorf("open mailbox %s: %w", c.o.Mailbox, c.clean(err))
	}

	return &mailbox{client, hint, selected.UIDValidity}, nil
}

// call opens a connection, with TLS unless that is switched off or comes later.
func (c *Connector) call(ctx context.Context, server string, tlsFirst bool) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	dialer := &net.Dialer{KeepAlive: 30 * time.Second}
	var conn net.Conn
	var err error
	if c.o.Plaintext || !tlsFirst {
		conn, err = dialer.DialContext(ctx, "tcp", server)
	} else {
		conn, err = (&tls.Dialer{NetDialer: dialer}).DialContext(ctx, "tcp", server)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", server, err)
	}

	return conn, nil
}

func (m *mailbox) idles() bool { return m.Caps().Has(imap.CapIdle) }

// find returns the numbers of the mails with a Message-ID.
func (m *mailbox) find(id string) ([]imap.UID, error) {
	if err := m.Noop().Wait(); err != nil { // servers show new mail only to who asks
		return nil, fmt.Errorf("look for mail: %w", err)
	}
	found, err := m.UIDSearch(&imap.SearchCriteria{Header: []imap.SearchCriteriaHeaderField{{Key: "Message-ID", Value: id}}}, nil).Wait()
	if err != nil {
		return nil, fmt.Errorf("look for mail: %w", err)
	}

	return found.AllUIDs(), nil
}

// remove deletes mails; where the server cannot remove single ones, they stay marked as deleted.
func (m *mailbox) remove(mails []imap.UID) error {
	set := imap.UIDSetNum(mails...)
	flags := &imap.StoreFlags{Op: imap.StoreFlagsAdd, Silent: true, Flags: []imap.Flag{imap.FlagDeleted}}
	if err := m.Store(set, flags, nil).Close(); err != nil {
		return fmt.Errorf("delete a mail: %w", err)
	}
	if !m.Caps().Has(imap.CapUIDPlus) && !m.Caps().Has(imap.CapIMAP4rev2) {
		return nil
	}
	if err := m.UIDExpunge(set).Close(); err != nil {
		return fmt.Errorf("delete a mail: %w", err)
	}

	return nil
}

// stay takes mail until the connection or ctx ends.
func (c *Connector) stay(ctx context.Context, deliver message.Deliver) error {
	box, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer box.Close()
	defer context.AfterFunc(ctx, func() { box.Close() })()

	message.Up(ctx)
	for failures := 0; ctx.Err() == nil; {
		err := c.takeAll(ctx, box, deliver)
		var later *notTaken
		switch {
		case errors.As(err, &later):
			c.log.Warn("mail not accepted; fetching it again", "err", err)
			chat.Rest(ctx, c.pause, failures)
			failures++
		case err != nil:
			return c.clean(err)
		default:
			failures = 0
			if err := box.wait(ctx); err != nil {
				return c.clean(err)
			}
		}
	}

	return nil
}

// wait waits until something may have come.
func (m *mailbox) wait(ctx context.Context) error {
	if !m.idles() {
		select {
		case <-m.changed:
		case <-time.After(askEvery):
		case <-ctx.Done():
			return nil
		}
		return m.Noop().Wait()
	}

	idle, err := m.Idle()
	if err != nil {
		return fmt.Errorf("wait for mail: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- idle.Wait() }()

	select {
	case <-m.changed:
	case <-time.After(idleTime):
	case <-ctx.Done():
	case err := <-ended:
		if err == nil {
			err = errors.New("the server ended the connection")
		}
		return fmt.Errorf("wait for mail: %w", err)
	}

	if err := idle.Close(); err != nil {
		<-ended
		return fmt.Errorf("wait for mail: %w", err)
	}

	return <-ended
}

// notTaken is a mail that is to be offered again.
type notTaken struct{ err error }

func (e *notTaken) Error() string { return e.err.Error() }
func (e *notTaken) Unwrap() error { return e.err }

// takeAll takes all mails that are not marked as seen, oldest first. The mark is
// how the mailbox records "received": it is set only when a mail is durable.
func (c *Connector) takeAll(ctx context.Context, box *mailbox, deliver message.Deliver) error {
	found, err := box.UIDSearch(&imap.SearchCriteria{NotFlag: []imap.Flag{imap.FlagSeen}}, nil).Wait()
	if err != nil {
		return fmt.Errorf("search for mail: %w", err)
	}
	uids := found.AllUIDs()
	slices.Sort(uids)

	for _, uid := range uids {
		raw, err := fetch(box.Client, uid)
		if err != nil {
			return err
		}
		key := strconv.FormatUint(uint64(box.validity), 10) + "." + strconv.FormatUint(uint64(uid), 10)
		if raw != nil {
			if err := c.take(ctx, deliver, raw, key); err != nil {
				return &notTaken{err}
			}
		} else {
			c.log.Warn("a mail over 25 MB was left in the mailbox", "uid", uid)
		}

		seen := &imap.StoreFlags{Op: imap.StoreFlagsAdd, Silent: true, Flags: []imap.Flag{imap.FlagSeen}}
		if err := box.Store(imap.UIDSetNum(uid), seen, nil).Close(); err != nil {
			return fmt.Errorf("mark mail as seen: %w", err)
		}
	}

	return nil
}

// fetch reads a mail without marking it; nil: it is too large.
func fetch(client *imapclient.Client, uid imap.UID) ([]byte, error) {
	sizes, err := client.Fetch(imap.UIDSetNum(uid), &imap.FetchOptions{UID: true, RFC822Size: true}).Collect()
	if err != nil {
		return nil, fmt.Errorf("read mail headers: %w", err)
	}
	if len(sizes) == 0 { // someone removed it
		return []byte{}, nil
	}
	if sizes[0].RFC822Size > maxMail {
		return nil, nil
	}

	whole := &imap.FetchItemBodySection{Peek: true}
	got, err := client.Fetch(imap.UIDSetNum(uid), &imap.FetchOptions{UID: true, BodySection: []*imap.FetchItemBodySection{whole}}).Collect()
	if err != nil {
		return nil, fmt.Errorf("fetch mail: %w", err)
	}
	if len(got) == 0 {
		return []byte{}, nil
	}

	return got[0].FindBodySection(whole), nil
}

// take takes one mail.
func (c *Connector) take(ctx context.Context, deliver message.Deliver, raw []byte, uid string) error {
	return c.strikes.Guard(uid, func() error {
		if len(raw) == 0 {
			return nil
		}
		p, err := c.read(raw, uid)
		if err != nil { // it will not get better
			c.log.Info("mail ignored", "uid", uid, "why", err)
			return nil
		}

		return c.desk.Take(ctx, deliver, p)
	})
}
