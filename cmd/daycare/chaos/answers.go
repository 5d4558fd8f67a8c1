package chaos

import (
	"slices"
	"strings"
	"time"
)

// What is checked of answers: they were recorded before they left, they came, to the chat
// that asked, in their order, with their text, and not again.

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

// sureAfter is how long after a platform took an answer its delivery must be on disk.
const sureAfter = time.Second

// repeated: an answer comes again only if its delivery was not yet on disk when the
// process died, and could not be.
func (c *checker) repeated(v view) {
	got := map[string]int{}
	for _, r := range v.replies {
		got[r.out]++
	}

	for out, before := range c.sure {
		if got[out] > before {
			c.violate("answered again: %s came %d times, though its delivery was recorded", out, got[out])
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

	c.needlessly(v)
	most := 1 + c.play.troubles() + c.play.Scenario.Refuse
	c.play.result.Again = 0
	for out, n := range got {
		c.play.result.Again += n - 1
		if n > most && c.play.user.platform.fails == nil {
			c.violate("answered again: %s came %d times in %d deaths", out, n, c.play.result.Deaths)
		}
	}
}

// needlessly: an answer that the platform took does not come again in the same life, nor
// if the life that brought it continued for a second.
func (c *checker) needlessly(v view) {
	if c.play.broken() || c.play.Pauses != nil {
		return // what a disk refused is not on it; a stopped process writes nothing
	}
	taken := map[string]reply{}
	for _, r := range v.replies {
		first, again := taken[r.out]
		if !r.told.IsZero() && !again {
			taken[r.out] = r
		}
		if !again {
			continue
		}

		died := c.play.user.diedAt(first.life)
		switch lived := died.Sub(first.told); {
		case first.life == r.life:
			c.violate("answered again: %s came again in the same life, %s after the platform took it", r.out,
				r.at.Sub(first.told).Round(time.Millisecond))
		case lived > sureAfter+c.play.h.stalls.between(first.told, died):
			c.violate("answered again: %s came again%s%s after the platform took it",
				r.out, livedFor, lived.Round(time.Millisecond))
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
				if !got[out] && belongs(a, l.Turn, ours) {
					c.play.result.violate("unanswered: promise %s was never delivered", out)
				}
			}
			if l.Type == "turn_end" && l.Reason != "canceled" &&
				slices.ContainsFunc(l.Items, func(id string) bool { return ours[id] }) && !promised[l.Turn] {
				c.play.result.violate("unanswered: turn %s ended (%s) without an answer", l.Turn, l.Reason)
			}
		}
	}
}

// belongs reports whether a turn is about a message of this world: others were
// answered before the case began.
func belongs(a *folder, turn string, ours map[string]bool) bool {
	for _, l := range a.history {
		if l.Type == "turn_end" && l.Turn == turn {
			return slices.ContainsFunc(l.Items, func(id string) bool { return ours[id] })
		}
	}

	return false
}

// checkWorded: each answer has the text that history promised, came to the chat that it was
// promised to, and is about a message of that chat.
func checkWorded(violate complaint, v view) {
	texts, chats := map[string]string{}, map[string]route{}
	for _, a := range v.agents {
		for _, l := range a.history {
			if id, to := l.promised(); id != "" {
				texts[id], chats[id] = l.Text, to
			}
		}
	}

	said := v.byKey()
	for _, r := range v.replies {
		text, ok := texts[r.out]
		if !ok {
			continue // judged by promised
		}
		if r.text != text {
			violate("wrong contents: answer %s came as %.60q, and history says %.60q", r.out, r.text, text)
		}
		if to := chats[r.out]; to.Connector != hooksConnector || to.Channel != r.chat {
			violate("wrong chat: answer %s was promised to %s/%s and came to %s", r.out, to.Connector, to.Channel, r.chat)
		}

		key, _, _ := strings.Cut(strings.ReplaceAll(r.text, ":", " "), " ")
		if s, ours := said[key]; ours && s.hook != "" && s.hook != r.chat {
			violate("wrong chat: an answer to %s, which was said in %s, came to %s", key, s.hook, r.chat)
		}
	}

	for _, a := range v.agents {
		for _, t := range a.turns() {
			about(violate, t, said)
		}
	}
}

// about: the last answer of a turn is about its newest message, and what the model was
// shown of that is what was said.
func about(violate complaint, t turnOf, said map[string]saying) {
	if t.reason != "done" || t.reported || len(t.messages) == 0 || len(t.answers) == 0 {
		return
	}
	newest, text := t.newest(), t.answers[len(t.answers)-1].Text
	if s, ours := said[t.messages[len(t.messages)-1].key()]; !ours || len(s.texts) != 1 || s.removed {
		return
	}

	want := answersTo(newest)
	if len(want) > 0 && !slices.ContainsFunc(want, func(w string) bool { return strings.HasPrefix(text, w) }) {
		violate("wrong contents: %.60q was answered %.80q, want %.80q", newest, text, want[0])
	}
	if len(t.messages) == 1 && t.calls == 0 && callsFor(newest) {
		violate("never came: turn %s over %.40q made no call", t.id, newest)
	}
}

// checkOrder: the answers of an agent come to a chat in the order in which they were
// promised.
func checkOrder(violate complaint, v view) {
	arrived := map[string]int{}
	for i, r := range v.replies {
		if _, again := arrived[r.out]; !again {
			arrived[r.out] = i
		}
	}

	for _, a := range v.agents {
		newest := map[route]string{}
		for _, l := range a.history {
			id, to := l.promised()
			at, came := arrived[id]
			if id == "" || !came {
				continue
			}
			if before := newest[to]; before != "" && arrived[before] > at {
				violate("reordered: answer %s came before %s, which was promised earlier", id, before)
			}
			newest[to] = id
		}
	}
}
