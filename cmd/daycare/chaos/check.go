package chaos

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A checker compares what the files say with what the world saw.
type checker struct {
	play *play
	// sure are the answers whose delivery was on disk at the newest death, and how
	// often they had come by then. Only others may come again.
	sure map[string]int
}

// A view is everything that is compared, read at one moment.
type view struct {
	agents  []*folder
	said    []saying
	replies []reply
	effects []effect
}

func (c *checker) view() (view, bool) {
	v := view{said: c.play.user.sayings(), replies: c.play.user.received()}
	var err error
	if v.agents, err = agentFiles(c.play.root, c.play.known); err == nil {
		v.effects, err = c.play.user.done()
	}
	if err != nil {
		c.play.result.violate("the files cannot be read: %v", err)
	}
	return v, err == nil
}

// atDeath checks what must hold at any moment, whatever was under way.
func (c *checker) atDeath() {
	v, ok := c.view()
	if !ok {
		return
	}
	c.accepted(v)
	c.history(v)
	c.effects(v)
	c.promised(v)
	c.repeated(v)
	c.named(v)
}

// atEnd checks what must hold when everything is done.
func (c *checker) atEnd() {
	v, ok := c.view()
	if !ok {
		return
	}
	c.accepted(v)
	c.history(v)
	c.effects(v)
	c.promised(v)
	c.repeated(v)
	c.named(v)
	c.finished(v)
	c.answered(v)
	c.clean(v)
	if judge := c.play.Scenario.Judge; judge != nil {
		if err := judge(c.play.user, v); err != nil {
			c.play.result.violate("%v", err)
		}
	}
	c.play.result.tally(v)
}

// accepted: what the daemon said it had is in an inbox, open, or in a history.
func (c *checker) accepted(v view) {
	open, recorded := map[string]bool{}, map[string]bool{}
	for _, a := range v.agents {
		for id, l := range a.open() {
			open[id], open[l.key()] = true, true
		}
		for _, l := range a.history {
			if l.Item != "" {
				recorded[l.Item] = true
			}
			if l.Type == "user_message" {
				recorded[l.key()] = true
			}
		}
	}
	for _, s := range v.said {
		if !s.accepted || s.removed || s.item == "" && c.inSlot(s.key) {
			continue
		}
		if !open[s.item] && !recorded[s.item] && !open[s.key] && !recorded[s.key] {
			c.play.result.Lost++
			c.play.result.violate("lost: %s was accepted as item %q and is nowhere", s.key, s.item)
		}
	}
}

// inSlot reports whether a letter still lies in the slot.
func (c *checker) inSlot(key string) bool {
	for _, dir := range []string{"drop", "drop/.taken"} {
		entries, err := os.ReadDir(filepath.Join(c.play.root, dir))
		if err != nil {
			continue
		}
		for _, e := range entries {
			data, err := os.ReadFile(filepath.Join(c.play.root, dir, e.Name()))
			if err == nil && strings.Contains(string(data), key+" ") {
				return true
			}
		}
	}
	return false
}

// history: no message is in it twice, those of one hook are in the order in which
// they were accepted, and no half line is inside.
func (c *checker) history(v view) {
	place := map[string]int{} // of a key among all that were offered
	hook := map[string]string{}
	for i, s := range v.said {
		place[s.key], hook[s.key] = i, s.hook
	}
	times := map[string]int{}
	for _, a := range v.agents {
		newest := -1
		for _, l := range a.history {
			if l.Type != "user_message" && l.Type != "reset" || l.Item == "" {
				continue
			}
			times["item "+l.Item]++
			key := l.key()
			if _, ours := place[key]; !ours || l.Type != "user_message" {
				continue
			}
			times[key]++
			if hook[key] == "" || times[key] > 1 {
				continue
			}
			if place[key] < newest {
				c.play.result.Reordered++
				c.play.result.violate("reordered: %s stands behind one that was accepted later", key)
			}
			newest = max(newest, place[key])
		}
		for _, text := range a.broken {
			c.play.result.violate("half line in %s: %s", filepath.Base(a.dir), text)
		}
	}
	for what, n := range times {
		if n > 1 {
			c.play.result.Duplicated++
			c.play.result.violate("duplicated: %s is %d times in history", what, n)
		}
	}
}

// effects: no call had an effect twice, nor one of which history does not say that
// it began.
func (c *checker) effects(v view) {
	started := map[string]bool{}
	for _, a := range v.agents {
		for _, l := range a.history {
			if l.Type == "tool_started" {
				started[l.ToolCallID] = true
			}
		}
	}
	calls, keys := map[string]int{}, map[string]int{}
	for _, e := range v.effects {
		calls[e.call]++
		keys[e.key]++
		if !started[e.call] && !c.anyRemoved(v) {
			c.play.result.violate("unrecorded: call %s had an effect and history does not say that it began", e.call)
		}
	}
	for _, counts := range []map[string]int{calls, keys} {
		for what, n := range counts {
			if n > 1 {
				c.play.result.Repeated++
				c.play.result.violate("repeated: the effect of %s came %d times", what, n)
			}
		}
	}
}

func (c *checker) anyRemoved(v view) bool {
	return slices.ContainsFunc(v.said, func(s saying) bool { return s.removed })
}

// promised: no answer left before history had it.
func (c *checker) promised(v view) {
	promises := map[string]bool{}
	for _, a := range v.agents {
		for _, l := range a.history {
			promises[l.promise()] = true
		}
	}
	for _, r := range v.replies {
		if !promises[r.out] && !c.anyRemoved(v) {
			c.play.result.violate("unrecorded: answer %s was sent and is not in history", r.out)
		}
	}
}

// repeated: an answer comes again only if its delivery was not yet on disk when the
// process died.
func (c *checker) repeated(v view) {
	got := map[string]int{}
	for _, r := range v.replies {
		got[r.out]++
	}
	for out, before := range c.sure {
		if got[out] > before {
			c.play.result.violate("answered again: %s came %d times, though its delivery was recorded", out, got[out])
		}
	}
	c.sure = map[string]int{}
	for _, a := range v.agents {
		for _, l := range a.history {
			if out := l.delivered(); l.Type == "delivery" && out != "" && l.Error == "" {
				c.sure[out] = got[out]
			}
		}
	}
	most := 1 + c.play.troubles() + c.play.Scenario.Refuse
	c.play.result.Again = 0
	for out, n := range got {
		c.play.result.Again += n - 1
		if n > most {
			c.play.result.violate("answered again: %s came %d times in %d deaths", out, n, c.play.result.Deaths)
		}
	}
}

// named: what a line speaks of is there.
func (c *checker) named(v view) {
	for _, a := range v.agents {
		for _, l := range append(a.inbox, a.history...) {
			for _, path := range l.names(a.dir) {
				if info, err := os.Stat(path); err != nil || info.Size() == 0 {
					c.play.result.violate("missing: %s, of which a %s speaks", path, l.Type)
				}
			}
		}
	}
}

// finished: every message is in history, each closed by one turn, inboxes empty,
// every call has one result.
func (c *checker) finished(v view) {
	ends, results, calls := map[string]int{}, map[string]int{}, map[string]bool{}
	recorded := map[string]bool{}
	for _, a := range v.agents {
		for id := range a.open() {
			c.play.result.violate("unfinished: item %s is still open in its inbox", id)
		}
		for _, l := range a.history {
			switch l.Type {
			case "user_message":
				recorded[l.key()] = true
			case "reset":
				recorded[l.Item] = true
			case "turn_end":
				for _, id := range l.Items {
					ends[id]++
				}
			case "tool_result":
				results[l.ToolCallID]++
			}
			for _, call := range l.ToolCalls {
				calls[call.ID] = true
			}
		}
	}
	for _, s := range v.said {
		if !s.removed && !recorded[s.key] && !recorded[s.item] {
			c.play.result.Lost++
			c.play.result.violate("lost: %s is not in history at the end", s.key)
		}
	}
	for id, n := range ends {
		if n != 1 {
			c.play.result.violate("closed %d times: item %s", n, id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(calls)) {
		if results[id] != 1 {
			c.play.result.violate("call %s has %d results", id, results[id])
		}
	}
}

// answered: every promise arrived, and every turn of a hook's message promised
// something.
func (c *checker) answered(v view) {
	got := map[string]bool{}
	for _, r := range v.replies {
		got[r.out] = true
	}
	ours := map[string]bool{}
	for _, s := range v.said {
		ours[s.item] = s.hook != "" && s.item != "" && !s.removed
	}
	for _, a := range v.agents {
		promised := map[string]bool{} // turns
		for _, l := range a.history {
			if out := l.promise(); l.Type == "assistant_message" && out != "" {
				promised[l.Turn] = true
				if !got[out] && c.belongs(a, l.Turn, ours) {
					c.play.result.violate("unanswered: promise %s was never delivered", out)
				}
			}
			if l.Type == "turn_end" && l.Reason != "canceled" && slices.ContainsFunc(l.Items, func(id string) bool { return ours[id] }) && !promised[l.Turn] {
				c.play.result.violate("unanswered: turn %s ended (%s) without an answer", l.Turn, l.Reason)
			}
		}
	}
}

// belongs reports whether a turn is about a message of this world: others were
// answered before the case began.
func (c *checker) belongs(a *folder, turn string, ours map[string]bool) bool {
	for _, l := range a.history {
		if l.Type == "turn_end" && l.Turn == turn {
			return slices.ContainsFunc(l.Items, func(id string) bool { return ours[id] })
		}
	}
	return false
}

// clean: nothing half done lies about.
func (c *checker) clean(v view) {
	var litter []string
	for _, a := range v.agents {
		if a.greeted() { // others clean up when there is work for them
			litter = append(litter, a.litter...)
		}
	}
	patterns := []string{"agents/.new-*", "drop/.taken/*", "drop/bad/*", "permissions/.tmp-*", "permissions/.swap-*", "files/.tmp-*"}
	if c.play.Scenario.Command == nil { // what a command leaves that dies, daycare gc removes
		patterns = append(patterns, ".tmp-*")
	}
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(c.play.root, pattern))
		if err != nil {
			c.play.result.violate("%v", err)
		}
		litter = append(litter, found...)
	}
	for _, path := range litter {
		c.play.result.violate("litter: %s", path)
	}
}

// waitsFor says what is missing, for a case that does not get on.
func (c *checker) waitsFor() string {
	v, ok := c.view()
	if !ok {
		return "the files cannot be read"
	}
	var missing []string
	recorded := map[string]bool{}
	for _, a := range v.agents {
		for id := range a.open() {
			missing = append(missing, "item "+id+" is open")
		}
		for _, l := range a.history {
			recorded[l.key()] = true
		}
	}
	for _, s := range v.said {
		if !s.accepted {
			missing = append(missing, s.key+" is not accepted")
		} else if !recorded[s.key] {
			missing = append(missing, s.key+" is not in history")
		}
	}
	return fmt.Sprintf("%d answers came, %d lives; %s", len(v.replies), c.play.life+1, strings.Join(missing, ", "))
}
