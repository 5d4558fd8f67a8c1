package chaos

import (
	"fmt"
	"slices"
	"strings"
)

// script is the model of all scenarios: it does what the words of the newest message
// say, whose first word is its key. Answers repeat the key and the text, so that whoever
// gets one can tell which message the model was shown, and how much of it.
const script = `
model: chaos
rules:
  - tool_result: read
    match: '^(?<key>\S+) look'
    reply: [ { text: "{{.Name.key}} did it: {{.Result}}" } ]
  - tool_result: "*"
    match: '^(?<key>\S+) (?:act|slow|large|delegate|spawn|research|pore|several|hello|think)\b'
    reply: [ { text: "{{.Name.key}} did it" } ]
  - tool_result: "*"
    reply: [ { text: "did it" } ]
  - after: permission
    reply: [ { calls: [ { name: exec, arguments: { command: "%[1]s approved >> %[2]s" } } ] } ]
  - match: '(?m)^(?<key>k\d) act$'
    reply: [ { calls: [ { name: exec, arguments: { command: "%[1]s {{.Name.key}} >> %[2]s" } } ] } ]
  - match: '^\S+ ask'
    reply: [ { calls: [ { name: exec, arguments: { command: "%[1]s approved >> %[2]s" } } ] } ]
  - match: '^(?<key>\S+) act'
    reply: [ { text: "I do it.", calls: [ { name: exec, arguments: { command: "%[1]s {{.Name.key}} >> %[2]s" } } ] } ]
  - match: '^(?<key>\S+) slow'
    reply: [ { calls: [ { name: exec, arguments: { command: "%[1]s {{.Name.key}} >> %[2]s; sleep 0.03" } } ] } ]
  - match: '^(?<key>\S+) labour'
    reply: [ { text: "I begin.", calls: [ { name: exec, arguments: { command: "%[1]s {{.Name.key}} >> %[2]s; sleep 2" } } ] } ]
  - match: '^(?<key>\S+) toil'
    reply: [ { text: "I begin.", calls: [ { name: exec, arguments: { command: "%[1]s {{.Name.key}} >> %[2]s; %[3]s" } } ] } ]
  - match: '^(?<key>\S+) large'
    reply: [ { calls: [ { name: exec, arguments: { command: "%[1]s {{.Name.key}} >> %[2]s; head -c 40000 /dev/zero | tr '\\0' x" } } ] } ]
  - match: '^(?<key>\S+) look'
    reply: [ { calls: [ { name: read, arguments: { path: README.md } } ] } ]
  - match: '^(?<key>\S+) delegate'
    reply: [ { calls: [ { name: start_background_agent, arguments: { name: helper, prompt: "{{.Name.key}}-child act" } } ] } ]
  - match: '^(?<key>\S+) spawn'
    reply: [ { calls: [ { name: spawn, arguments: { label: helper, task: "{{.Name.key}}-child act" } } ] } ]
  - match: '^\S+ research'
    reply: [ { calls: [ { name: CodeSearch, arguments: { query: "where is it" } } ] } ]
  - match: '^\S+ recall'
    reply: [ { text: "this is turn {{.Turn}}" } ]
  - match: '^\S+ pore'
    reply: [ { calls: [ { name: read, arguments: { path: long.txt } } ] } ]
  - match: '^(?<key>\S+) several'
    reply: [ { calls: [
      { name: read, arguments: { path: README.md } }, { name: glob, arguments: { pattern: "*" } },
      { name: exec, arguments: { command: "%[1]s {{.Name.key}} >> %[2]s" } },
      { name: read, arguments: { path: README.md } }, { name: ls, arguments: { path: "." } } ] } ]
  - match: '^(?<key>\S+) recite'
    reply: [ { text: "one two three four", chunk: 6, every: 100ms } ]
  - match: '^(?<key>\S+) think'
    reply: [ { delay: 20ms, text: "{{.Name.key}}: I have thought" } ]
  - match: '(?s)^(?<key>\S+) (?<rest>.{1,100})'
    reply: [ { text: "{{.Name.key}} noted: {{.Name.rest}}" } ]
  - reply: [ { text: "noted" } ]
`

// effectCommand appends the call's id and its argument to a file in one write.
const effectCommand = `printf '%s %s\\n' \"$DAYCARE_CALL\"`

func scriptFor(effects string) string {
	toil := fmt.Sprintf("until [ -e %s ] || [ $((n+=1)) -gt 100 ]; do sleep 0.2; done", enough(effects))
	return fmt.Sprintf(script, effectCommand, effects, toil)
}

// enough is the file that ends a call which lasts as long as the user wants: "toil".
func enough(effects string) string { return effects + ".enough" }

// answersTo are the ways in which the answer to a message may begin, as the script has
// it; none: it depends on more than the message. A message that joins a turn in which
// tools have just run is answered with their results.
func answersTo(text string) []string {
	if len(text) > likelyShortened {
		return nil
	}
	words := strings.Fields(text)
	if len(words) < 2 {
		return nil
	}

	key, word := words[0], words[1]
	did := key + " did it"
	switch word {
	case "think":
		return []string{key + ": I have thought", did}
	case "act", "slow", "large", "delegate", "spawn", "research", "several":
		return []string{did}
	case "look":
		return []string{did + ": 1\t# Read me"}
	case "ask", "labour", "pore", "recall", "recite", "toil":
		return nil
	}

	return []string{key + " noted: " + firstLetters(strings.TrimPrefix(text, key+" "), 100), did}
}

// likelyShortened is how long a text is that may be summarised before it is answered.
const likelyShortened = 50_000

func firstLetters(s string, n int) string { return s[:min(n, len(s))] }

// callsFor reports whether the model calls a tool for a message.
func callsFor(text string) bool {
	words := strings.Fields(text)
	return len(words) > 1 && slices.Contains([]string{"act", "slow", "look", "several", "large", "pore", "ask",
		"delegate", "spawn", "research"}, words[1])
}
