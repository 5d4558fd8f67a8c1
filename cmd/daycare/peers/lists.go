// Lists that all machines have a part of: each is asked, and one list is made of the answers.

package peers

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"daycare/engine/control"
)

// newer reports whether an agent's entry in a list is newer than another machine's.
func newer(a, b map[string]any) bool {
	running, _ := a["running"].(bool)
	other, _ := b["running"].(bool)
	if running != other {
		return running
	}
	at, _ := a["lastAt"].(string)
	than, _ := b["lastAt"].(string)

	return at > than
}

// A merging says how the lists of all machines become one.
type merging struct {
	list, key string                         // the members that have the entries, and by which one is known
	newer     func(a, b map[string]any) bool // which of two for one thing is kept; nil: that of this machine
	at        string                         // the member by which the newest come first; "": they stay in their order
	most      int                            // entries; 0: all
}

// merge answers with a list of all machines.
func (t turnout) merge(how merging) {
	t.req.Header.Del("Accept-Encoding") // it is read here
	w := newKept()
	t.local(w)
	var body map[string][]map[string]any
	if w.status != http.StatusOK || json.Unmarshal(w.body.Bytes(), &body) != nil {
		t.answer(w)
		return
	}
	lists := [][]map[string]any{body[how.list]}
	for _, theirs := range others[map[string][]map[string]any](t, listFor) {
		lists = append(lists, theirs[how.list])
	}
	body[how.list] = how.one(lists)
	t.say(w, body)
}

// one is the list that several become, the first of which is that of this machine.
func (how merging) one(lists [][]map[string]any) []map[string]any {
	all, at := []map[string]any{}, map[any]int{}
	for _, e := range slices.Concat(lists...) {
		i, known := at[e[how.key]]
		switch {
		case !known:
			at[e[how.key]] = len(all)
			all = append(all, e)
		case how.newer != nil && how.newer(e, all[i]):
			all[i] = e
		}
	}

	if how.at != "" {
		slices.SortStableFunc(all, func(a, b map[string]any) int { return timeIn(b, how.at).Compare(timeIn(a, how.at)) })
	}
	if how.most > 0 {
		all = all[:min(len(all), how.most)]
	}

	return all
}

// timeIn is a time in an entry of a list; zero: it has none.
func timeIn(entry map[string]any, member string) time.Time {
	text, _ := entry[member].(string)
	at, _ := time.Parse(time.RFC3339Nano, text)
	return at
}

// permissions answers with the requests of all machines that wait, or with the newest that were answered.
func (t turnout) permissions() {
	how := merging{list: "permissions", key: "token"}
	if most := control.AnsweredAtMost(t.req); most > 0 {
		how.at, how.most = "decidedAt", most
	}
	t.merge(how)
}
