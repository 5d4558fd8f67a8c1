package scripted

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"daycare/agents/providers"
	"daycare/engine/lazyregexp"
)

// answers is the final text of a turn: one part for each message.
func (o *offline) answers(sc scene, jobs []*job, missing []string) string {
	var parts []string
	for _, j := range jobs {
		text := o.answer(sc, j, missing)
		if text != "" && !slices.Contains(parts, text) {
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 {
		return "NO_MESSAGE"
	}
	return strings.Join(parts, "\n\n")
}

func (o *offline) answer(sc scene, j *job, missing []string) string {
	if len(j.results) > 0 {
		return j.report()
	}
	if c := j.next(); c != nil && slices.Contains(missing, c.tool) {
		return fmt.Sprintf("I would need the tool `%s` for that, and I do not have it here.", c.tool)
	}
	switch {
	case j.in.do == vague:
		return "Which command exactly? For example: `run go test ./...`"
	case j.in.do == outside:
		return "This came from outside, from nobody I know, so I change nothing and run nothing for it."
	case j.said.system:
		return systemAnswer(j.said)
	case len(j.said.files) > 0:
		return "I have got " + count(len(j.said.files), "file") + ". Say for example `read " + j.said.files[0] + "`."
	}
	if regexpTime.MatchString(j.said.text) && j.said.time != "" {
		return "Your message is from " + j.said.time + "."
	}
	return o.smallTalk(sc, j.said)
}

var regexpTime = lazyregexp.New(`(?i)^what(?:'s|’s| is)? (?:the )?(?:time|date|day)\b`)

// smallTalk answers by the script, or says honestly that it cannot.
func (o *offline) smallTalk(sc scene, s said) string {
	for _, r := range o.talk.Rules {
		if r.match != nil && r.match.MatchString(s.text) {
			text, _ := r.Reply[0].text.String(View{Text: s.text})
			return text
		}
	}
	if s.text == "" {
		return "I got an empty message. Say `help` for what I can do."
	}
	if saidBefore(sc.req.Messages) {
		return "I cannot answer that offline. Say `help` for what I can do."
	}
	return "I cannot answer that: I am daycare's offline model, because no key for a language model was found. " +
		"Set ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENROUTER_API_KEY, or start Ollama, and restart daycare.\n\n" +
		"What I can do: read, list, find and search files, write and change them, and run commands. " +
		"Try `list files` or `what is in README.md?`, or say `help`."
}

// saidBefore reports whether the person has been told who answers.
func saidBefore(messages []*providers.Message) bool {
	for _, m := range messages {
		if m.Role != providers.Assistant {
			continue
		}
		for _, p := range m.Parts {
			if t, ok := p.(providers.Text); ok && strings.Contains(t.Text, "offline model") {
				return true
			}
		}
	}
	return false
}

// systemAnswer answers what the runtime or another agent said.
func systemAnswer(s said) string {
	switch {
	case strings.Contains(s.text, "HEARTBEAT_OK"):
		return "HEARTBEAT_OK"
	case isDecision(s) && refusal.MatchString(s.text):
		return "All right, I leave it."
	case isDecision(s):
		return "Thank you. I do not find the call that this was for; please ask me again."
	case s.text == "" || s.origin == "system":
		return "" // a note of the runtime, for the context
	}
	return "A message from another agent:\n\n" + quote(clip(s.text, 1500))
}

// report says what the job's calls gave.
func (j *job) report() string {
	r := j.results[len(j.results)-1]
	c := j.made[len(j.results)-1]
	var args map[string]any
	_ = json.Unmarshal(c.Arguments, &args)
	arg := func(name string) string { s, _ := args[name].(string); return s }
	switch {
	case waits(r):
		return approval(c.Name, arg("command"))
	case r.IsError && r.Name != "exec":
		return failed(j, r.Text)
	}
	switch r.Name {
	case "read":
		return j.readAnswer(arg("path"), r)
	case "ls":
		return listing(fmt.Sprintf("In `%s`", arg("path")), r.Text)
	case "glob":
		if j.in.do != find && len(j.results) > 1 {
			return otherNames(j.in.path, r.Text)
		}
		return listing(fmt.Sprintf("Files that match `%s`", arg("pattern")), r.Text)
	case "grep":
		return matches(j.in.what, r.Text)
	case "exec":
		return "`" + oneLine(arg("command")) + "` gave:\n\n" + fence(clip(r.Text, 4000), "")
	}
	return "Done: " + r.Text
}

func approval(tool, command string) string {
	what := "`" + tool + "`"
	if command != "" {
		what = "`" + oneLine(command) + "`"
	}
	return "I need your approval for " + what + ". I go on as soon as you have answered."
}

func failed(j *job, text string) string {
	if j.in.do == says || j.in.do == show || j.in.do == about {
		if notThere.MatchString(text) {
			return fmt.Sprintf("There is no file `%s`. Try `find %s` or `list files`.", j.in.path, j.in.path)
		}
	}
	return "That did not work: " + clip(text, 1000)
}

func otherNames(path, text string) string {
	found := entries(text)
	if len(found) == 0 {
		return fmt.Sprintf("There is no file `%s`, and none whose name begins like it.", path)
	}
	return listing(fmt.Sprintf("There is no file `%s`. Do you mean one of these?", path), text)
}

// entries are the lines of a listing, without marks in brackets.
func entries(text string) []string {
	var list []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if line != "" && !strings.HasPrefix(line, "[") && !strings.HasPrefix(line, "no ") {
			list = append(list, line)
		}
	}
	return list
}

// shownLines is how much of a listing or file goes into an answer.
const shownLines = 40

func listing(title, text string) string {
	all := entries(text)
	if len(all) == 0 {
		return title + ": nothing."
	}
	more := ""
	if n := len(all) - shownLines; n > 0 {
		all, more = all[:shownLines], fmt.Sprintf("\n… and %d more.", n)
	}
	return strings.TrimSuffix(title, "?") + ending(title) + "\n\n" + fence(strings.Join(all, "\n"), "") + more
}

func ending(title string) string {
	if strings.HasSuffix(title, "?") {
		return "?"
	}
	return ":"
}

func matches(what, text string) string {
	all := entries(text)
	if len(all) == 0 {
		return fmt.Sprintf("I find no line with `%s`.", oneLine(what))
	}
	return listing(fmt.Sprintf("Lines with `%s`", oneLine(what)), text)
}

func fence(text, language string) string {
	marks := "```"
	for strings.Contains(text, marks) {
		marks += "`"
	}
	return marks + language + "\n" + strings.TrimRight(text, "\n") + "\n" + marks
}

func quote(text string) string { return "> " + strings.ReplaceAll(text, "\n", "\n> ") }

func oneLine(s string) string {
	s, rest, cut := strings.Cut(s, "\n")
	if cut && strings.TrimSpace(rest) != "" {
		s += " …"
	}
	return strings.ReplaceAll(clip(s, 120), "`", "'")
}

// clip shortens s to n characters.
func clip(s string, n int) string {
	if i := prefix(s, n); i < len(s) {
		return s[:i] + "…"
	}
	return s
}
