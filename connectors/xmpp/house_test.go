package xmpp

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	teamJID = "team@rooms.test.example"
	fileJID = "files.test.example"
)

// A house is what a server has beside accounts: archives, rooms and a place for files.
type house struct {
	s *server

	mu       sync.Mutex
	archives map[string][]element // messages, oldest first; the id of each is its number, from 1 on
	lost     int                  // so many of the oldest ids are not known any more
	asked    []element            // of archives
	nicks    []string             // that others have in rooms
	made     bool                 // a room is made by who enters
	away     bool                 // the server of rooms cannot be reached
	forgot   bool                 // that we are in the room
	why      string               // what it answers then; "": not-acceptable
	late     bool                 // what is refused comes back after the server has acknowledged it
	deaf     bool                 // the room repeats nothing
	back     string               // what comes back late
	stable   bool                 // the room says that it keeps ids
	entered  []string             // the nicks that we asked for
	opened   int                  // rooms that were set up
	slot     string               // how a place for a file is given; "": files are not carried
	asks     []element            // for places of files
}

func newHouse(s *server) *house {
	h := &house{s: s, archives: map[string][]element{}}
	s.answers(h.deal)
	return h
}

// began is when the first message of each archive was said; one follows each minute.
var began = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

// keep puts messages of a user into an archive.
func (h *house) keep(archive, from string, texts ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	kind := "chat"
	if archive != botJID {
		kind = "groupchat"
	}
	for _, text := range texts {
		m := node(nsClient, "message", "from", from, "to", botJID, "type", kind, "id", "id of "+text).with(
			node(nsClient, "body").saying(text))
		if kind == "groupchat" {
			m = m.with(node(nsMUCUser, "x").with(node(nsMUCUser, "item", "jid", adaJID+"/phone")))
		}
		h.archives[archive] = append(h.archives[archive], m)
	}
}

func (h *house) deal(p *peer, e element) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	query, mam := e.kid(nsMAM, "query")
	to, nick, _ := strings.Cut(e.attr("to"), "/")
	switch {
	case mam:
		h.page(p, e, query)
	case e.has(nsInfo, "query"):
		can := map[string]string{botJID: nsMAM, teamJID: nsMAM, fileJID: nsUpload}[to]
		if to == fileJID && h.slot == "" {
			can = ""
		}
		features := node(nsInfo, "query").with(node(nsInfo, "feature", "var", can))
		if to == teamJID && h.stable {
			features = features.with(node(nsInfo, "feature", "var", nsStable))
		}
		h.result(p, e, features)
	case e.has(nsItems, "query"):
		h.result(p, e, node(nsItems, "query").with(node(nsItems, "item"), node(nsItems, "item", "jid", fileJID)))
	case e.has(nsUpload, "request"):
		ask, _ := e.kid(nsUpload, "request")
		h.asks = append(h.asks, ask)
		p.put(fmt.Sprintf("<iq type='result' id='%s' from='%s'>%s</iq>", e.attr("id"), to, h.slot))
	case e.has(nsOwner, "query"):
		h.opened++
		h.result(p, e)
	case e.XMLName.Local == "presence" && to == teamJID && e.attr("type") == "":
		h.enter(p, nick)
	case h.forgot && to == teamJID && e.has(nsPing, "ping"):
		p.put(h.refusal(e))
	case h.forgot && to == teamJID && e.XMLName.Local == "message" && h.late:
		h.back = h.refusal(e)
	case h.forgot && to == teamJID && e.XMLName.Local == "message":
		p.put(h.refusal(e))
	case e.XMLName.Local == "r" && h.back != "":
		p.raw(fmt.Sprintf("<a xmlns='%s' h='%d'/>", nsSM, p.in))
		p.put(h.back)
		h.back = ""
	case h.deaf && to == teamJID && e.XMLName.Local == "message":
	case e.XMLName.Local == "message" && to == teamJID:
		said := node(nsClient, "message", "from", to+"/"+h.entered[len(h.entered)-1], "to", botJID, "type", "groupchat",
			"id", e.attr("id")).with(e.Kids...)
		h.archives[to] = append(h.archives[to], said)
		p.put(string(said.bytes()))
		return false // and it is said
	default:
		return false
	}

	return true
}

func (h *house) result(p *peer, e element, kids ...element) {
	p.put(string(node(nsClient, "iq", "type", "result", "id", e.attr("id"), "from", e.attr("to")).with(kids...).bytes()))
}

// refusal is what the room says to somebody who is not in it.
func (h *house) refusal(e element) string {
	return fmt.Sprintf("<%s type='error' id='%s' from='%s'><error type='cancel'><%s xmlns='%s'/></error></%[1]s>",
		e.XMLName.Local, e.attr("id"), e.attr("to"), cmp.Or(h.why, "not-acceptable"), nsErrors)
}

// page answers a question to an archive.
func (h *house) page(p *peer, e, query element) {
	h.asked = append(h.asked, e)
	of := e.attr("to")
	set, _ := query.kid(nsRSM, "set")
	most, _ := set.kid(nsRSM, "max")
	n, _ := strconv.Atoi(most.Text)
	all := h.archives[of]
	from := h.lost
	if after, ok := set.kid(nsRSM, "after"); ok {
		if from, _ = strconv.Atoi(after.Text); from <= h.lost {
			p.put(fmt.Sprintf("<iq type='error' id='%s' from='%s'><error type='cancel'><item-not-found xmlns='%s'/></error></iq>",
				e.attr("id"), of, nsErrors))
			return
		}
	}
	form, _ := query.kid(nsForm, "x")
	for _, f := range form.Kids {
		if value, _ := f.kid(nsForm, "value"); f.attr("var") == "start" {
			start, _ := time.Parse(time.RFC3339, value.Text)
			from = max(from, int(start.Sub(began)/time.Minute))
		}
	}
	to := min(len(all), from+n)
	if set.has(nsRSM, "before") {
		from, to = max(h.lost, len(all)-n), len(all)
	}

	last := ""
	for i := from; i < to; i++ {
		last = strconv.Itoa(i + 1)
		at := began.Add(time.Duration(i) * time.Minute).Format(time.RFC3339)
		p.put(string(node(nsClient, "message", "from", of, "to", botJID).with(
			node(nsMAM, "result", "queryid", query.attr("queryid"), "id", last).with(
				node(nsForward, "forwarded").with(node(nsDelay, "delay", "stamp", at), all[i]))).bytes()))
	}
	h.result(p, e, node(nsMAM, "fin", "complete", strconv.FormatBool(to == len(all))).with(
		node(nsRSM, "set").with(node(nsRSM, "last").saying(last))))
}

// enter lets us into the room, in which Ada is, if nobody has the nick.
func (h *house) enter(p *peer, nick string) {
	h.entered = append(h.entered, nick)
	if h.away {
		p.put(fmt.Sprintf("<presence type='error' from='%s/%s'><error type='wait'><remote-server-timeout xmlns='%s'/></error></presence>",
			teamJID, nick, nsErrors))
		return
	}
	if slices.Contains(h.nicks, nick) {
		p.put(fmt.Sprintf("<presence type='error' from='%s/%s'><error type='cancel'><conflict xmlns='%s'/></error></presence>",
			teamJID, nick, nsErrors))
		return
	}
	h.forgot = false
	p.put(occupant("Ada", adaJID+"/phone", ""))
	p.put(occupant("Eve", "", "")) // whose account the room does not tell
	status := []string{"110"}
	if h.made {
		status = append(status, "201")
	}
	p.put(occupant(nick, botJID+"/daycare", "", status...))
}

// occupant is the presence of somebody in the room.
func occupant(nick, account, kind string, status ...string) string {
	item := node(nsMUCUser, "item")
	if account != "" {
		item = node(nsMUCUser, "item", "jid", account)
	}
	x := node(nsMUCUser, "x").with(item)
	for _, code := range status {
		x = x.with(node(nsMUCUser, "status", "code", code))
	}
	e := node(nsClient, "presence", "from", teamJID+"/"+nick)
	if kind != "" {
		e = node(nsClient, "presence", "from", teamJID+"/"+nick, "type", kind)
	}
	return string(e.with(x).bytes())
}

// inTeam is what somebody says in the room; id is its number there, "" if it gives none.
func inTeam(nick, id, text string, kids ...element) string {
	m := node(nsClient, "message", "from", teamJID+"/"+nick, "to", botJID, "type", "groupchat", "id", "own-"+text).with(
		node(nsClient, "body").saying(text))
	if id != "" {
		m = m.with(node(nsSID, "stanza-id", "by", teamJID, "id", id))
	}
	return string(m.with(kids...).bytes())
}

func (h *house) did(what func(h *house)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	what(h)
}
