package chaos

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// A checker compares what the files say with what the world saw. What it looks at is in
// accepted.go (messages), contents.go (what stands in them), calls.go (effects),
// answers.go, rights.go and times.go.
type checker struct {
	play *play
	// sure are the answers whose delivery was on disk at the newest death, and how
	// often they had come by then. Only others may come again.
	sure map[string]int
}

// A view is everything that is compared, read at one moment.
type view struct {
	agents    []*folder
	said      []saying
	replies   []reply
	effects   []effect
	decisions []decision
}

func (c *checker) view() (view, bool) {
	u := c.play.user
	var v view
	var err error
	if v.agents, err = agentFiles(c.play.root, c.play.known); err == nil {
		v.effects, err = u.done()
	}
	if err != nil {
		c.violate("the files cannot be read: %v", err)
	}

	// After the files: whoever edits one notes before what they are about to write.
	v.said, v.replies, v.decisions = u.sayings(), u.received(), u.decided()
	return v, err == nil
}

// A complaint says what was promised and is not so.
type complaint func(format string, args ...any)

func (c *checker) violate(format string, args ...any) { c.play.result.violate(format, args...) }

// atDeath checks what must hold at any moment, whatever was in progress.
func (c *checker) atDeath() {
	if v, ok := c.view(); ok {
		c.always(v)
	}
}

func (c *checker) always(v view) {
	c.accepted(v)
	c.history(v)
	checkTold(c.violate, v)
	c.effects(v)
	c.promised(v)
	c.repeated(v)
	c.named(v)
	checkUsedRights(c.violate, v)
	c.late(v)
}

// atEnd checks what must hold when everything is done.
func (c *checker) atEnd() {
	v, ok := c.view()
	if !ok {
		return
	}
	c.always(v)
	c.finished(v)
	c.results(v)
	c.answered(v)
	checkWorded(c.violate, v)
	checkOrder(c.violate, v)
	checkKeptRights(c.violate, v)
	c.clean(v)
	if judge := c.play.Scenario.Check; judge != nil {
		if err := judge(c.play.user, v); err != nil {
			c.violate("%v", err)
		}
	}

	c.play.result.tally(v)
}

func (c *checker) anyRemoved(v view) bool {
	return slices.ContainsFunc(v.said, func(s saying) bool { return s.removed })
}

// byKey is what was offered under each key.
func (v view) byKey() map[string]saying {
	all := make(map[string]saying, len(v.said))
	for _, s := range v.said {
		all[s.key] = s
	}

	return all
}

// clean: nothing half done lies about.
func (c *checker) clean(v view) {
	var litter []string
	for _, a := range v.agents {
		if a.greeted() { // others clean up when there is work for them
			litter = append(litter, a.litter...)
		}
	}

	patterns := []string{"agents/.new-*", "drop/.taken/*", "drop/bad/*", "permissions/.tmp-*", "permissions/.swap-*",
		"files/.tmp-*", "usage/.tmp-*"}
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
	rest, _, err := newFollower(c.play.root, c.play.known).rest()
	if err != nil {
		return fmt.Sprintf("the files cannot be read: %v", err)
	}
	var missing []string
	for _, s := range c.play.user.sayings() {
		if !s.accepted {
			missing = append(missing, s.key+" is not accepted")
		}
	}

	return fmt.Sprintf("%d answers came, %d lives; %s", len(c.play.user.received()), c.play.life+1,
		strings.Join(append(missing, cmp.Or(rest, "the logs owe nothing")), ", "))
}
