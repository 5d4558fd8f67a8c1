package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A fact is what the world of a test saw, and what stands in the files.
type fact struct {
	history []string
	inbox   string
	effects string
	replies []string // of answers with the text that was promised
	happens func(w *world, p *play)
	want    string // the violation; "": nothing is wrong
}

const (
	at0    = `"at":"2026-11-22T10:00:00Z",`
	begin  = `{` + at0 + `"type":"turn_begin","turn":"t1","items":["i1","i2"]}`
	end    = `{` + at0 + `"type":"turn_end","turn":"t1","items":["i1","i2"],"reason":"done"}`
	hook   = `"context":{"sender":"a"},"route":{"connector":"hooks","channelId":"a"}`
	one    = `{` + at0 + `"type":"user_message","item":"i1","text":"m1 hello",` + hook + `}`
	two    = `{` + at0 + `"type":"user_message","item":"i2","text":"m2 hello",` + hook + `}`
	answer = `{"type":"assistant_message","turn":"t1","text":"m2 noted: hello","out":{"id":"o1","to":{"connector":"hooks",` +
		`"channelId":"a"}}}`
	call    = `{"type":"assistant_message","turn":"t1","text":"","toolCalls":[{"id":"c1","name":"exec"}]}`
	again   = `{"seq":9,"type":"user_message","item":"i2","text":"m2 hello",` + hook + `}`
	endToo  = `{"seq":9,"type":"turn_end","turn":"t1","items":["i1","i2"]}`
	started = `{"type":"tool_started","toolCallId":"c1"}`
	result  = `{"type":"tool_result","toolCallId":"c1","name":"exec","status":"ok"}`
)

// The checker must see each thing that it is there for.
func TestCheckerSees(t *testing.T) {
	whole := []string{begin, one, two, answer, end}
	came := []string{"o1"}
	edit := func(from, to string) []string {
		return strings.Split(strings.Replace(strings.Join(whole, "\n"), from, to, 1), "\n")
	}
	for name, f := range map[string]fact{
		"nothing":    {history: []string{begin, one, two, call, started, result, answer, end}, effects: "c1 m1\n", replies: came},
		"lost":       {history: []string{begin, one, answer, end}, replies: came, want: "lost: m2 was accepted"},
		"duplicated": {history: []string{begin, one, two, again, answer, end}, replies: came, want: "duplicated: m2 is 2 times"},
		"reordered":  {history: []string{begin, two, one, answer, end}, replies: came, want: "reordered: m1"},
		"half line":  {history: []string{begin, one, `{"type":"us`, two, answer, end}, replies: came, want: "half line"},
		"repeated": {history: []string{begin, one, two, call, started, result, answer, end},
			effects: "c1 m1\nc1 m1\n", replies: came, want: "repeated: the effect of c1 came 2 times"},
		"not begun": {history: []string{begin, one, two, call, result, answer, end}, effects: "c1 m1\n",
			replies: came, want: "unrecorded: call c1"},
		"not promised": {history: whole, replies: []string{"o1", "o2"}, want: "unrecorded: answer o2"},
		"not answered": {history: whole, want: "unanswered: promise o1"},
		"silent":       {history: []string{begin, one, two, end}, want: "without an answer"},
		"not closed": {history: whole, replies: came,
			inbox: `{"type":"message","id":"i9","text":"m1 hello",` + hook + "}\n", want: "unfinished: item i9"},
		"closed twice": {history: append(whole[:5:5], endToo), replies: came, want: "closed 2 times"},
		"no result":    {history: []string{begin, one, two, call, started, answer, end}, replies: came, want: "call c1 has 0 results"},

		"another text": {history: edit("m1 hello", "m1 hell"), replies: came, want: "wrong contents: m1 stands as"},
		"nobody's message": {history: append(whole[:5:5], strings.ReplaceAll(again, "m2", "m9")), replies: came,
			want: `wrong contents: nobody said "m9 hello"`},
		"another sender": {history: edit(`"sender":"a"`, `"sender":"b"`), replies: came, want: "wrong sender: m1"},
		"another route":  {history: edit(`"channelId":"a"`, `"channelId":"b"`), replies: came, want: "wrong chat: m1 was said in a"},
		"a file missing": {history: whole, replies: came,
			happens: func(w *world, _ *play) { w.byKey["m1"].files = map[string]string{"f": "x"} },
			want:    "wrong contents: m1 has the files"},
		"another agent":  {history: whole, replies: came, happens: func(_ *world, p *play) { owner(p, "b") }, want: "wrong agent: m1"},
		"another answer": {history: edit("m2 noted: hello", "m1 noted: hello"), replies: came, want: "was answered"},
		"answer changed": {history: whole,
			happens: func(w *world, _ *play) { w.arrive(reply{out: "o1", chat: "a", text: "m2 noted: hell"}) },
			want:    "wrong contents: answer o1 came as"},
		"wrong chat": {history: whole,
			happens: func(w *world, _ *play) { w.arrive(reply{out: "o1", chat: "b", text: "m2 noted: hello"}) },
			want:    "wrong chat: answer o1 was promised to hooks/a and came to b"},
		"wrong result": {history: []string{begin, one, two,
			strings.Replace(call, `"exec"`, `"read","arguments":{"path":"README.md"}`, 1),
			strings.Replace(result, "exec", "read", 1), answer, end}, replies: came, want: "wrong contents: the result of call c1"},
		"result of another": {history: []string{begin, one, two, call, started,
			strings.Replace(result, "exec", "read", 1), answer, end}, effects: "c1 m1\n", replies: came,
			want: "is of read, and exec was called"},
		"never came": {history: []string{begin, one, two,
			strings.Replace(call, `"exec"`, `"exec","arguments":{"command":"x >> EFFECTS"}`, 1), started, result,
			answer, end}, replies: came, want: "never came: call c1"},
		"no call": {history: []string{begin, strings.Replace(one, "hello", "act", 1),
			strings.Replace(answer, "m2 noted: hello", "m1 did it", 1), end}, replies: came,
			happens: func(w *world, _ *play) { w.byKey["m1"].texts = []string{"m1 act"} }, want: "never came: turn t1"},
		"late answers": {history: append(whole[:5:5], strings.Replace(answer, "o1", "o2", 1)),
			replies: []string{"o2", "o1"}, want: "reordered: answer o2 came before o1"},
		"again in one life": {history: whole, replies: []string{"o1", "o1"}, want: "answered again: o1 came again in the same life"},
		"again too late": {history: whole, happens: func(w *world, _ *play) {
			w.arrive(reply{out: "o1", chat: "a", text: "m2 noted: hello"})
			w.replies[0].told = time.Now().Add(-3 * time.Second)
			w.died(time.Now())
			w.arrive(reply{out: "o1", chat: "a", text: "m2 noted: hello"})
			w.replies[1].life = 1
		}, want: "though the process lived for 3"},
		"late": {history: []string{begin, one, strings.Replace(two, "10:00:00", "10:00:07", 1), answer, end},
			replies: came, happens: func(w *world, _ *play) {
				w.byKey["m2"].at, _ = time.Parse(time.RFC3339, "2026-11-22T10:00:01Z")
			}, want: "late: m2 was accepted"},
		"joined after a death": {history: []string{begin, one, strings.Replace(two, "10:00:00", "10:00:09", 1), answer, end},
			replies: came, happens: func(w *world, _ *play) {
				w.byKey["m2"].at, _ = time.Parse(time.RFC3339, "2026-11-22T10:00:01Z")
				w.ended[0], _ = time.Parse(time.RFC3339, "2026-11-22T10:00:08Z")
			}},
		"begun days later by its clock": {history: []string{begin, one, strings.Replace(two, "2026-11-22T10:00:00Z",
			time.Now().Add(lateBy).Format(time.RFC3339), 1), answer, end}, replies: came,
			happens: func(w *world, p *play) {
				w.byKey["m2"].at, w.ended[0], p.ahead = time.Now(), time.Now(), lateBy
			}},

		"once twice": {history: whole, replies: came, effects: "c1 approved\nc2 approved\n",
			happens: decides("once", 0), want: "without permission: 2 calls"},
		"deny ignored": {history: whole, replies: came, effects: "c1 approved\n", happens: decides("deny", 0),
			want: "without permission: 1 calls had their effect after a person said \"deny\", want at most 0"},
		"revoked ignored": {history: whole, replies: came, effects: "c1 approved\nc2 approved\n",
			happens: decides("always", 0, revoked, 1), want: "after a person said \"revoked\""},
		"always": {history: whole, replies: came, effects: "c1 approved\nc2 approved\n",
			happens: func(w *world, p *play) { decides("always", 0)(w, p); grant(p, "p0") }, want: "unrecorded: call c1"},
		"always forgot": {history: whole, replies: came, happens: decides("always", 0), want: "forgotten right: request p0"},
		"revoked stays": {history: whole, replies: came,
			happens: func(w *world, p *play) { decides("always", 0, revoked, 0)(w, p); grant(p, "p0") },
			want:    "right not taken back: what request p0"},
	} {
		t.Run(name, func(t *testing.T) { f.check(t) })
	}
}

func (f fact) check(t *testing.T) {
	dir := t.TempDir()
	w, err := newWorld(dir, "w", "")
	if err != nil {
		t.Fatal(err)
	}
	s := &Scenario{Name: "test"}
	h := &harness{stalls: &stallClock{}}
	root := filepath.Join(dir, ".daycare")
	p := &play{Case: Case{Scenario: s}, h: h, ground: ground{root: root},
		conversation: conversation{user: newUser(w, root, "", "")}, result: newResult(Case{Scenario: s})}
	p.check = &checker{play: p}
	agent := filepath.Join(root, "agents", "a1")
	if err := os.MkdirAll(agent, 0o700); err != nil {
		t.Fatal(err)
	}

	owner(p, "a")
	grant(p, "another")
	write(t, filepath.Join(agent, "history.jsonl"), strings.ReplaceAll(strings.Join(f.history, "\n")+"\n", "EFFECTS", w.effects))
	write(t, filepath.Join(agent, "inbox.jsonl"), f.inbox)
	write(t, w.effects, f.effects)
	when, _ := time.Parse(time.RFC3339, "2026-11-22T10:00:00Z")
	for i, key := range []string{"m1", "m2"} {
		w.accept(w.offer(saying{key: key, hook: "a", kind: "user_message", texts: []string{key + " hello"},
			sender: "a"}), fmt.Sprintf("i%d", i+1))
		w.byKey[key].at = when
	}

	for _, out := range f.replies {
		w.arrive(reply{out: out, chat: "a", text: "m2 noted: hello"})
	}
	if f.happens != nil {
		f.happens(w, p)
	}

	p.check.atEnd()
	found := strings.Join(p.result.Violations, "\n")
	if f.want == "" && found != "" || !strings.Contains(found, f.want) {
		t.Errorf("violations:\n%s\nwant: %q", found, f.want)
	}
}

// decides has a user decide, each time after so many effects.
func decides(whatAndBefore ...any) func(*world, *play) {
	return func(w *world, _ *play) {
		for i := 0; i < len(whatAndBefore); i += 2 {
			w.decisions = append(w.decisions,
				&decision{token: fmt.Sprintf("p%d", i/2), what: whatAndBefore[i].(string),
					before: whatAndBefore[i+1].(int), accepted: true})
		}
	}
}

func owner(p *play, channel string) {
	path := filepath.Join(p.root, "agents", "a1", "descriptor.json")
	_ = os.WriteFile(path, fmt.Appendf(nil, `{"type":"user","connector":"hooks","channelId":%q}`, channel), 0o600)
}

func grant(p *play, token string) {
	path := filepath.Join(p.root, "agents", "a1", "state.json")
	_ = os.WriteFile(path, fmt.Appendf(nil, `{"permissions":{"grants":[{"token":%q}]}}`, token), 0o600)
}
