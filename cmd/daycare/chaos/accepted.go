package chaos

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// What is checked of messages: none is lost, none is there twice, in their order.

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

// inSlot reports whether a letter still is in the slot.
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
