package main

import (
	"slices"
	"strings"
	"testing"

	"daycare/engine/event"
)

// poisonScript is a family of which one child never comes further: the daemon dies
// each time that it is at work.
const poisonScript = `rules:
  - { contains: "start one", round: 1, reply: [ { calls: [ { name: start_background_agent, arguments: { prompt: "the poison", name: ` +
	`sick } } ] } ] }
  - { contains: "spawn one", round: 1, reply: [ { calls: [ { name: spawn, arguments: { task: "the poison", label: sick } } ] } ] }
  - { contains: "ask one", round: 1, reply: [ { calls: [ { name: CodeReview, arguments: { target: "the poison" } } ] } ] }
  - { tool_result: CodeReview, reply: [ { text: "The review: {{.Result}}" } ] }
  - { tool_result: "*", reply: [ { text: "It is at work." } ] }
  - { contains: "failed", reply: [ { text: "I was told." } ] }
  - { contains: "the poison", reply: [ { fault: { hang: true } } ] }
  - { reply: [ { text: "heard" } ] }
`

// An agent whose turn has died three times is set aside. Its parent is told so once,
// however it waits for the child and however often daycare starts after that, and is
// not set aside itself.
func TestParentHearsOfAChildThatWasSetAside(t *testing.T) {
	t.Parallel()
	for ask, want := range map[string][]string{
		"start one": {"I was told.", "It is at work."},
		"spawn one": {"I was told.", "It is at work."},
		"ask one":   {"The review: I could not answer: this message made me fail 3 times, so I set it aside. Please try again."},
	} {
		t.Run(strings.Fields(ask)[0], func(t *testing.T) {
			h := newChatHouse(t, poisonScript, "")
			c := h.start()
			lead := h.lead(c)
			if err := h.send(c, lead, ask); err != nil {
				t.Fatal(err)
			}

			restart := func() {
				c.Close()
				h.kill()
				c = h.start()
			}
			told := func() string { return h.records(c, lead, "user_message") + h.records(c, lead, "tool_result") }
			aside := func() bool { return strings.Contains(told(), "set it aside") }
			for !aside() {
				waitFor(t, "the child at work, or its end", func() bool {
					list, err := c.Agents(t.Context())
					return err == nil &&
						slices.ContainsFunc(list, func(a event.Agent) bool { return a.ID != lead && a.State == event.Thinking }) || aside()
				})
				if !aside() {
					restart()
				}
			}

			h.calm(c)
			waitFor(t, "the answers", func() bool { return len(h.answers()) >= len(want) })
			for range 2 {
				restart()
				h.calm(c)
			}

			if got := h.answers(); !slices.Equal(got, want) {
				t.Errorf("the chat:\n%q, want\n%q", got, want)
			}
			if n := strings.Count(told(), "set it aside"); n != 1 {
				t.Errorf("the parent was told %d times that its child was set aside, want once:\n%s", n, told())
			}
		})
	}
}
