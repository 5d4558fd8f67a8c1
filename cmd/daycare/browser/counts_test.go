//go:build !race

package browser

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// asked are the requests of the page since it was loaded, of the API, without their queries, in order.
func (p *tab) asked() []string {
	p.t.Helper()
	return eval[[]string](p, `performance.getEntriesByType("resource").map(e => new URL(e.name))
		.filter(u => u.pathname.startsWith("/v1/")).map(u => u.pathname)`)
}

// Home asks for each thing once, whatever the number of agents, and an agent's page for each of its things.
func TestRequestsOfViews(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, talkScript, "")
	w.start()
	var last string
	for i := range 12 {
		last = w.agent(fmt.Sprintf("agent %d", i))
	}
	w.say(last, "hello")
	w.state(last, "idle")
	p := newTab(t)
	// The page waits 350 ms for its connection, then reads, and reads again when the connection is there. Here it waits for
	// as long as a busy machine takes.
	p.onNew("(later => { window.setTimeout = (f, ms, ...more) => later(f, ms === 350 ? 1e6 : ms, ...more); })(setTimeout)")
	p.login(w, "/costs")
	for path, most := range map[string]int{"/": 8, "/agents/11": 9} {
		p.goTo(path)
		p.sees("Noted.")
		p.settled()
		list := p.asked()
		if len(list) > most {
			t.Errorf("%s makes %d requests, want at most %d: %q", path, len(list), most, list)
		}
		slices.Sort(list)
		once := slices.Compact(slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == "/v1/events" }))
		if streams := strings.Count(strings.Join(list, " "), "/v1/events"); len(once)+streams != len(list) {
			t.Errorf("%s asks for something twice: %q", path, list)
		}
	}
}

// A long history is read as far as it is scrolled, and the page never has more than about 500 records of it. What was
// let go comes back, each record once, in order.
func TestLongHistory(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, talkScript, "")
	w.start()
	agent := w.agent("worker")
	w.say(agent, "hello")
	w.state(agent, "idle")
	w.run("stop")
	w.daemon.Wait()
	w.daemon = nil
	w.lengthen(agent, 1000)
	w.start()
	p := w.visit("/agents/0")
	p.wait("document.querySelectorAll('main .log small').length > 10", "the transcript is shown")
	first := p.seqs()
	newest := first[len(first)-1]

	p.scrolls("log.scrollTop = 0", "document.querySelector('main .log small')?.innerText.match(/#(\\d+)/)?.[1] < 10",
		"the beginning is shown")
	p.find("button", "To the newest")
	if seqs := p.seqs(); seqs[len(seqs)-1] >= newest {
		t.Errorf("the newest record, %d, is still in the page with the first one", newest)
	}
	p.scrolls("log.scrollTop = log.scrollHeight", "document.querySelector('main .log .newer').hidden", "the end is shown")
	if seqs := p.seqs(); seqs[len(seqs)-1] != newest {
		t.Errorf("the last record is %d, want %d", seqs[len(seqs)-1], newest)
	}

	p.scrolls("log.scrollTop = 0", "!document.querySelector('main .log .newer').hidden", "records at the end were let go")
	w.say(agent, "one more")
	p.wait("document.querySelector('main .log .newer').innerText === '1 new'", "the new answer is counted")
	p.click("button", "1 new")
	p.wait("document.querySelector('main .log').innerText.includes('one more')", "the newest message is shown")
	p.wait("document.querySelector('main .log .newer').hidden", "nothing is left to go to")
}

// seqs are the numbers of the messages that are shown. Each is there once, in order, and there are not too many records.
func (p *tab) seqs() []int {
	p.t.Helper()
	seqs := eval[[]int](p, "[...document.querySelectorAll('main .log small')].map(e => +e.innerText.match(/#(\\d+)/)[1])")
	if len(seqs) == 0 || !slices.IsSorted(seqs) || len(slices.Compact(slices.Clone(seqs))) != len(seqs) {
		p.t.Errorf("the records are not there once and in order: %v", seqs)
	}
	if n := eval[int](p, "document.querySelectorAll('main .log ol.entries > li').length"); n > 600 {
		p.t.Errorf("%d records are in the page", n)
	}
	return seqs
}

// scrolls moves the transcript until something holds.
func (p *tab) scrolls(move, until, what string) {
	p.t.Helper()
	p.wait(fmt.Sprintf("(() => { const log = document.querySelector('main .log'); if (%s) return true; %s; return false; })()",
		until, move), what)
	p.seqs()
}
