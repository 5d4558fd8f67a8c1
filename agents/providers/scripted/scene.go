package scripted

import (
	"slices"
	"strings"

	"daycare/agents/providers"
	"daycare/engine/lazyregexp"
)

// A View is what the templates of a script see.
type View struct {
	Text   string            // the last message
	Match  []string          // the groups of match; 0 is all of it
	Name   map[string]string // its named groups
	Result string            // text of the last tool result of this turn
	Tool   string            // name of the tool that gave it
	Turn   int               // number of this turn in the conversation, from 1
	Round  int               // number of this model call in the turn, from 1
	Agent  string
}

// said is one message in a conversation, without its wrapping.
type said struct {
	text   string
	from   string // one of the constants below
	silent bool   // asks for no answer
}

// Who speaks.
const (
	fromUser    = "user"
	fromOutside = "outside" // without a known person behind it
	fromAgent   = "agent"
	fromSystem  = "system" // the runtime
)

// scene is a request seen as a conversation.
type scene struct {
	req    *providers.Request
	turn   int
	round  int
	window []*providers.Message // of this turn
	last   said                 // the newest message that asks for an answer
	// arrived are the results that came just now, nil if the last word is a message.
	arrived []providers.Result
}

// newScene finds the current turn: what follows the last answer that made no
// calls.
func newScene(req *providers.Request) scene {
	sc := scene{req: req, turn: 1, round: 1}
	start := 0
	for i, m := range req.Messages {
		if m.Role != providers.Assistant {
			continue
		}
		if len(partsOf[providers.Call](m)) == 0 {
			sc.turn, sc.round, start = sc.turn+1, 1, i+1
		} else {
			sc.round++
		}
	}

	sc.window = req.Messages[start:]
	sc.last, sc.arrived = sc.lastSaid(), sc.lastResults()
	return sc
}

// lastSaid looks for the newest message that asks for an answer, wherever it stands
// in the turn.
func (sc scene) lastSaid() said {
	for i := len(sc.window) - 1; i >= 0; i-- {
		all := saidIn(sc.window[i])
		for j := len(all) - 1; j >= 0; j-- {
			if !all[j].silent {
				return all[j]
			}
		}
	}

	return said{}
}

func (sc scene) lastResults() []providers.Result {
	for i := len(sc.window) - 1; i >= 0; i-- {
		switch m := sc.window[i]; {
		case m.Role == providers.Results:
			return partsOf[providers.Result](m)
		case !slices.ContainsFunc(saidIn(m), func(s said) bool { return !s.silent }):
		default:
			return nil
		}
	}

	return nil
}

// parts returns a scene for each message and result that is to be answered. Messages sent
// right after each other arrive as one: a text that only the last rule fits is answered line by line.
func (s *script) parts(sc scene) []scene {
	var all []scene
	for _, one := range sc.each() {
		understood := slices.ContainsFunc(s.Rules[:len(s.Rules)-1], func(r *rule) bool {
			_, ok := r.fits(one)
			return ok
		})
		if understood {
			all = append(all, one)
			continue
		}

		for line := range strings.SplitSeq(one.last.text, "\n") {
			one.last.text = strings.TrimSpace(line)
			all = append(all, one)
		}
	}

	return all
}

// each returns a scene for each message and each result that came since the last call
// of the model, in their order.
func (sc scene) each() []scene {
	var all []scene
	for _, m := range sc.window {
		if m.Role == providers.Assistant {
			all = nil
		}
		for _, r := range partsOf[providers.Result](m) {
			one := sc
			one.last, one.arrived = said{}, []providers.Result{r}
			all = append(all, one)
		}

		for _, s := range saidIn(m) {
			if !s.silent {
				one := sc
				one.last, one.arrived = s, nil
				all = append(all, one)
			}
		}
	}

	return all
}

// fits reports whether the rule's conditions hold, and what its templates see.
func (r *rule) fits(sc scene) (View, bool) {
	last := sc.last
	v := View{Text: last.text, Turn: sc.turn, Round: sc.round, Agent: sc.req.Agent}
	results := sc.arrived
	if len(results) > 0 {
		v.Result, v.Tool = results[len(results)-1].Text, results[len(results)-1].Name
	}

	switch {
	case r.From != "" && r.From != last.from:
		return v, false
	case r.Turn != 0 && r.Turn != sc.turn, r.Round != 0 && r.Round != sc.round:
		return v, false
	case r.ToolResult != "" && !r.gave(results, &v):
		return v, false
	case r.ToolResult == "" && len(results) > 0 && (r.match != nil || r.Contains != "" || r.From != ""):
		return v, false // the message was answered by the calls whose results these are
	case r.Contains != "" && !strings.Contains(strings.ToLower(last.text), r.Contains):
		return v, false
	case r.After == "permission" && (len(results) > 0 || !isDecision(last)):
		return v, false
	}

	if r.match != nil {
		if v.Match = r.match.FindStringSubmatch(last.text); v.Match == nil {
			return v, false
		}
		v.Name = map[string]string{}
		for i, name := range r.match.SubexpNames() {
			if name != "" {
				v.Name[name] = v.Match[i]
			}
		}
	}

	return v, true
}

// gave reports whether one of the results is of the tool that the rule wants.
func (r *rule) gave(results []providers.Result, v *View) bool {
	for _, res := range results {
		if r.ToolResult == "*" || r.ToolResult == res.Name {
			v.Result, v.Tool = res.Text, res.Name
			return true
		}
	}

	return false
}

// partsOf are the parts of a message that are a P.
func partsOf[P providers.Part](m *providers.Message) (parts []P) {
	for _, p := range m.Parts {
		if one, ok := p.(P); ok {
			parts = append(parts, one)
		}
	}

	return parts
}

// opening is how a message begins as agents/prompt writes it. What lies between is long,
// and so not looked for with an expression: agents/prompt escapes every "</" in it.
var opening = lazyregexp.New(`<(message|system_message)((?:\s[^<>]*)?)>`)

// saidIn takes the messages out of a user message: several if they were folded.
// Text without the wrapping is one message.
func saidIn(m *providers.Message) []said {
	if m.Role != providers.User {
		return nil
	}
	var all []said
	for _, p := range m.Parts {
		t, ok := p.(providers.Text)
		if !ok {
			continue
		}
		if !strings.Contains(t.Text, "message>") {
			all = append(all, said{text: strings.TrimSpace(t.Text), from: fromUser})
			continue
		}

		for rest := t.Text; ; {
			var one said
			if one, rest, ok = nextSaid(rest); !ok {
				break
			}
			all = append(all, one)
		}
	}

	return all
}

// nextSaid splits the first wrapped message off a text; false: none.
func nextSaid(text string) (one said, rest string, ok bool) {
	at := opening.FindStringSubmatchIndex(text)
	if at == nil {
		return said{}, "", false
	}
	kind, attributes := text[at[2]:at[3]], text[at[4]:at[5]]
	body, rest, ok := strings.Cut(text[at[1]:], "</"+kind+">")
	if !ok {
		return said{}, "", false
	}

	one = said{text: strings.TrimSpace(unescape(body)), from: fromUser, silent: strings.Contains(attributes, `silent="true"`)}
	switch {
	case strings.Contains(attributes, `untrusted="true"`):
		one.from = fromOutside
	case strings.Contains(attributes, `origin="system"`):
		one.from = fromSystem
	case kind == "system_message":
		one.from = fromAgent
	}

	return one, rest, true
}

func unescape(s string) string {
	if !strings.Contains(s, "&") {
		return s
	}
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&#34;", `"`, "&#39;", "'", "&amp;", "&").Replace(s)
}

// decision is how agents/prompt reports the answer to a permission request.
var decision = lazyregexp.New(`^(Allowed (once|from now on)\b|Denied:|Nobody answered the request\b)`)

// isDecision reports whether the message is the runtime's note of an answer to a
// permission request.
func isDecision(s said) bool {
	return s.from == fromSystem && decision.MatchString(s.text)
}
