package xmpp

import (
	"context"
	"crypto/rand"
	"encoding/xml"
	"strconv"
	"time"
)

// Servers and rooms keep messages in archives (XEP-0313). What was said while we were away is
// read from there, a page at a time, from the place up to which everything is durable.

const pageSize = 50

// An archive is one of an account or a room, being read or read to its end.
type archive struct {
	address string
	busy    bool   // being read: what comes live meanwhile is in it, too
	missed  bool   // something came live since the last page was asked for
	after   string // the last id that was read
	since   time.Time
	again   bool // the place was gone, and reading began at its time
}

// A query is one question to an archive. each is called by the reader for a message.
type query struct {
	from string
	each func(s *session, n uint32, at position, m element) bool
}

// archives is a session that reads archives.
type archives struct{ *session }

// page asks an archive for a page of messages; set says which one.
func (s archives) page(ctx context.Context, of string, form []element, set element, q query, end func(*session, element)) error {
	id, to := rand.Text(), of
	q.from = of
	s.flow.state.Lock()
	s.flow.queries[id] = q
	s.flow.state.Unlock()
	what := node(nsMAM, "query", "queryid", id)
	if len(form) > 0 {
		kind := field("FORM_TYPE", nsMAM)
		what = what.with(node(nsForm, "x", "type", "submit").with(append([]element{kind}, form...)...))
	}

	finish := func(s *session, e element) {
		s.flow.state.Lock()
		delete(s.flow.queries, id)
		s.flow.state.Unlock()
		end(s, e)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}

	return s.request("set", to, what.with(set), finish)
}

func field(name, value string) element {
	return node(nsForm, "field", "var", name).with(node(nsForm, "value").saying(value))
}

// rsm is which page is wanted: of at most n, after an id, or the last one.
func rsm(n int, after string, last bool) element {
	set := node(nsRSM, "set").with(node(nsRSM, "max").saying(strconv.Itoa(n)))
	if after != "" {
		set = set.with(node(nsRSM, "after").saying(after))
	}
	if last {
		set = set.with(node(nsRSM, "before"))
	}

	return set
}

// result deals with a message of an archive; false: the session ends. One that was not asked
// for, or comes from somebody else, is forged.
func (s archives) result(n uint32, e element) bool {
	r, _ := e.kid(nsMAM, "result")
	from := s.ours(e.attr("from"))
	s.flow.state.Lock()
	q, ok := s.flow.queries[r.attr("queryid")]
	s.flow.state.Unlock()
	forwarded := r.down(xml.Name{Space: nsForward, Local: "forwarded"})
	m, found := forwarded.kid(nsClient, "message")
	if !ok || q.from != from || !found {
		s.c.log.Warn("ignored a message that claims to be of an archive", "from", from)
		return intake{s.session}.pass(n)
	}
	delay, _ := forwarded.kid(nsDelay, "delay")
	at, _ := time.Parse(time.RFC3339, delay.attr("stamp")) // without one it has no time

	return q.each(s.session, n, position{ID: r.attr("id"), At: at}, m)
}

// newest is the last place of an archive; the zero one if it is empty.
func (s archives) newest(ctx context.Context, of string, end func(*session, position, element)) error {
	var last position
	return s.page(ctx, of, nil, rsm(1, "", true), query{each: func(s *session, n uint32, at position, _ element) bool {
		last = at
		return intake{s}.pass(n)
	}}, func(s *session, e element) { end(s, last, e) })
}

// catchUp reads an archive to its end. Until then nothing of it is taken live, so that all is
// in order; what came live since the last page was asked for is asked for, too.
func (s archives) catchUp(a *archive) {
	if a.after == "" && a.since.IsZero() {
		p, _ := s.c.marks.place(a.address)
		if a.after = p.ID; p.ID == "" {
			a.since = p.At
		}
	}
	a.missed = false
	var form []element
	if a.after == "" && !a.since.IsZero() {
		form = append(form, field("start", a.since.UTC().Format(time.RFC3339)))
	}
	err := s.page(context.Background(), a.address, form, rsm(pageSize, a.after, false),
		query{each: func(s *session, n uint32, at position, m element) bool { return archives{s}.archived(n, a, at, m) }},
		func(s *session, e element) { archives{s}.paged(a, e) })
	if err != nil {
		s.c.log.Debug("archive not read", "archive", a.address, "err", err) // the connection is lost
	}
}

// paged continues after a page.
func (s archives) paged(a *archive, e element) {
	fin, ok := e.kid(nsMAM, "fin")
	if !ok {
		if p, _ := s.c.marks.place(a.address); !a.again && a.after != "" && !p.At.IsZero() {
			a.again, a.after, a.since = true, "", p.At
			s.catchUp(a)
			return
		}
		s.c.log.Warn("cannot read the archive: messages that came while daycare was away may be missing",
			"archive", a.address, "err", condition(e))
		a.busy = false
		return
	}

	if last := fin.down(xml.Name{Space: nsRSM, Local: "set"}, xml.Name{Space: nsRSM, Local: "last"}).Text; last != "" {
		a.after = last
	} else if fin.attr("complete") != "true" {
		a.missed = false // an empty page that claims that more follows would be asked for forever
		a.busy = false
		return
	}
	if fin.attr("complete") == "true" && !a.missed {
		a.busy = false
		return
	}
	s.catchUp(a)
}

// archived takes a message of an archive.
func (s archives) archived(n uint32, a *archive, at position, m element) bool {
	return intake{s.session}.take(n, m, arrival{archive: a.address, at: at})
}
