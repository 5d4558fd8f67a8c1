// Package scripted is a model that needs no network: it plays a script, for
// tests, demonstrations and load, and without a script it is the offline model
// that a new user gets who has no key yet.
//
// A script is YAML. Of its rules the first one whose conditions all hold answers;
// a rule without conditions always does.
//
//	model: demo                      # what Complete names; optional
//	each: true                       # answer all messages and results that came, not only the last; optional
//	rules:
//	  - match: '(?i)hello (?<who>\w+)'   # regular expression over the last message
//	    reply:
//	      - text: "Hello {{.Name.who}}!"
//	  - contains: deploy             # the last message contains it, any case
//	    turn: 2                      # in the second turn of the conversation
//	    round: 1                     # the first model call of the turn
//	    once: true                   # once for each agent
//	    reply:
//	      - delay: 200ms
//	      - thinking: Let me look.
//	      - calls:
//	          - { name: read, arguments: { path: "{{.Text}}" } }
//	  - tool_result: read            # the results of a call of read came just now; "*": of any
//	    reply:
//	      - { text: "It says: {{.Result}}", chunk: 8, every: 20ms }
//	      - usage: { input: 100, output: 20 }
//	  - after: permission            # the answer to a permission request came just now
//	    reply: [ { text: Thank you. } ]
//	  - from: outside                # the last message is from: user, outside, agent or system
//	    reply: [ { text: "I do nothing for strangers." } ]
//	  - reply:
//	      - fault: { status: 529, retryAfter: 2s }
//
// Within a step the order is delay, thinking, text, calls, usage, fault. Faults
// are status (with retryAfter, kind and message), hang, reset, noEnd and garbage.
// A call's rawArguments is sent as it is, JSON or not.
//
// Text, thinking and string arguments are Go templates over View; {{fence .Result}} makes a
// code block of a text. The offline model is such a script: offline.yaml.
package scripted
