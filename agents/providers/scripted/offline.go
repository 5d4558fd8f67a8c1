package scripted

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	"daycare/agents/providers"
	"daycare/engine/lazyregexp"
)

// offline is the model of those who have no key: fixed rules that turn a few
// plain requests into real tool calls, and that say what came of them. It keeps
// nothing between two calls; where it stands follows from the conversation.
type offline struct {
	patterns func() []pattern // compiled when somebody asks for the first time
	talk     *script
}

func newOffline(talk *script) *offline {
	return &offline{patterns: sync.OnceValue(grammar), talk: talk}
}

// call is a tool call to be made.
type call struct {
	tool string
	args map[string]any
}

// job is one message of the turn under way and what was done about it.
type job struct {
	said    said
	in      intent
	again   *providers.Call // a call that a person has approved
	made    []providers.Call
	results []providers.Result
}

// offline answers as the offline model.
func (pl *player) offline(sc scene) {
	if err := pl.ctx.Err(); err != nil {
		pl.fail(err)
		return
	}
	jobs := pl.p.offline.jobs(sc)
	var missing []string
	var calls []call
	for _, j := range jobs {
		if c := j.next(); c != nil {
			if !slices.ContainsFunc(sc.req.Tools, func(t providers.Tool) bool { return t.Name == c.tool }) {
				missing = append(missing, c.tool)
				continue
			}
			calls = append(calls, *c)
		}
	}
	for _, c := range calls {
		args, err := json.Marshal(c.args)
		if err != nil {
			pl.broken("encode arguments", err)
			return
		}
		if !pl.call(c.tool, string(args)) {
			return
		}
	}
	if len(calls) == 0 && !pl.text(pl.p.offline.answers(sc, jobs, missing), 0, 0) {
		return
	}
	pl.complete()
}

// jobs plays the turn under way back: which message led to which calls, and what
// they gave. Calls are made for all open jobs at once, in the jobs' order.
func (o *offline) jobs(sc scene) []*job {
	var jobs []*job
	for _, m := range sc.window {
		switch m.Role {
		case providers.User:
			for _, s := range saidIn(m) {
				jobs = append(jobs, o.newJobs(sc, s)...)
			}
		case providers.Assistant:
			calls := callsOf(m)
			for _, j := range jobs {
				c := j.next()
				if c == nil || len(calls) == 0 || calls[0].Name != c.tool {
					continue
				}
				j.made, calls = append(j.made, calls[0]), calls[1:]
			}
		case providers.Results:
			for _, r := range resultsOf(m) {
				for _, j := range jobs {
					if n := len(j.made); n > len(j.results) && j.made[n-1].ID == r.CallID {
						j.results = append(j.results, r)
					}
				}
			}
		}
	}
	return jobs
}

// newJobs makes the jobs of one message: one, or one for each line if each line
// is a request (messages sent right after each other arrive as one).
func (o *offline) newJobs(sc scene, s said) []*job {
	if s.silent {
		return nil
	}
	if isDecision(s) {
		j := &job{said: s}
		if !refusal.MatchString(s.text) {
			j.again = awaited(sc.req.Messages, s.text)
		}
		return []*job{j}
	}
	if in := o.understand(s); in.do != talk || s.system || !strings.Contains(s.text, "\n") {
		return []*job{{said: s, in: in}}
	}
	var jobs []*job
	for line := range strings.Lines(s.text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		one := s
		one.text = line
		jobs = append(jobs, &job{said: one, in: o.understand(one)})
	}
	if !slices.ContainsFunc(jobs, func(j *job) bool { return j.in.do != talk }) {
		return []*job{{said: s}}
	}
	return jobs
}

// understand finds what a message asks for. What comes from outside, without a
// known person behind it, is looked up only: nothing is changed for it.
func (o *offline) understand(s said) intent {
	in := understand(o.patterns(), s.text)
	if s.untrusted && (in.do == write || in.do == replace || in.do == run) {
		return intent{do: outside}
	}
	return in
}

var needsApproval = lazyregexp.New(`\bneeds approval [a-z0-9]{24,32}\b`)

// waits reports whether a call was held back until a person allows it. A file may
// speak of approvals too: only a failed call's result with a token is one.
func waits(r providers.Result) bool { return r.IsError && needsApproval.MatchString(r.Text) }

// awaited finds the call whose approval a note of the runtime tells of: the one
// whose command it quotes, else the newest one that waited.
func awaited(messages []*providers.Message, note string) *providers.Call {
	var newest *providers.Call
	for i := len(messages) - 1; i >= 0; i-- {
		for _, r := range resultsOf(messages[i]) {
			if !waits(r) {
				continue
			}
			c := callOf(messages[:i], r.CallID)
			if c == nil {
				continue
			}
			var args struct {
				Command string `json:"command"`
			}
			if json.Unmarshal(c.Arguments, &args) == nil && args.Command != "" && strings.Contains(note, "("+args.Command+")") {
				return c
			}
			if newest == nil {
				newest = c
			}
		}
	}
	return newest
}

// callOf finds a call by its id.
func callOf(messages []*providers.Message, id string) *providers.Call {
	for i := len(messages) - 1; i >= 0; i-- {
		for _, c := range callsOf(messages[i]) {
			if c.ID == id {
				return &c
			}
		}
	}
	return nil
}

// next is the call that the job needs now, nil if it has all it needs.
func (j *job) next() *call {
	if len(j.made) > len(j.results) {
		return nil
	}
	if j.again != nil && len(j.made) == 0 {
		var args map[string]any
		if json.Unmarshal(j.again.Arguments, &args) != nil {
			return nil
		}
		return &call{j.again.Name, args}
	}
	if len(j.results) > 0 {
		return j.another()
	}
	in := j.in
	switch in.do {
	case show, about, says:
		args := map[string]any{"path": in.path}
		if in.lines > 0 {
			args["limit"] = in.lines
		}
		return &call{"read", args}
	case list:
		return &call{"ls", map[string]any{"path": in.path}}
	case find:
		return &call{"glob", withPath(map[string]any{"pattern": in.what}, in.path)}
	case search:
		return &call{"grep", withPath(map[string]any{"pattern": regexp.QuoteMeta(in.what)}, in.path)}
	case write:
		return &call{"write", map[string]any{"path": in.path, "content": in.what}}
	case replace:
		args := map[string]any{"path": in.path, "old": in.old, "new": in.what}
		if in.all {
			args["all"] = true
		}
		return &call{"edit", args}
	case run:
		return &call{"exec", map[string]any{"command": in.what}}
	}
	return nil
}

func withPath(args map[string]any, path string) map[string]any {
	if path != "" {
		args["path"] = path
	}
	return args
}

var (
	notThere = lazyregexp.New(`(?i)no such|not found|does not exist`)
	isFolder = lazyregexp.New(`(?i)is a (folder|directory)`)
)

// another is the second try after a first result: people write "readme" and mean
// README.md, or ask to read a folder.
func (j *job) another() *call {
	last := j.results[len(j.results)-1]
	if j.in.do != show && j.in.do != about && j.in.do != says || waits(last) {
		return nil
	}
	switch {
	case last.Name == "read" && last.IsError && isFolder.MatchString(last.Text):
		return &call{"ls", map[string]any{"path": j.in.path}}
	case last.Name == "read" && last.IsError && notThere.MatchString(last.Text) && len(j.results) == 1 &&
		!strings.ContainsAny(j.in.path, "/*?[]{}\\"):
		return &call{"glob", map[string]any{"pattern": "**/" + anyCase(j.in.path) + "*"}}
	case last.Name == "glob" && !last.IsError:
		if found := entries(last.Text); len(found) == 1 {
			return &call{"read", map[string]any{"path": found[0]}}
		}
	}
	return nil
}

// anyCase makes a glob that matches word in upper and lower case.
func anyCase(word string) string {
	var b strings.Builder
	for _, r := range word {
		lower, upper := strings.ToLower(string(r)), strings.ToUpper(string(r))
		if lower == upper {
			b.WriteRune(r)
		} else {
			b.WriteString("[" + lower + upper + "]")
		}
	}
	return b.String()
}
