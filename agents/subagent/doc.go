// Package subagent is sub-agents as tools: a kind of agent that is defined in one
// Markdown file, started by a tool call, and whose answer is the call's result.
//
// A definition is .daycare/subagents/NAME.md, or one of those built in (see
// builtin/), which a file of the same name replaces:
//
//	---
//	name: Translator
//	description: Translate a file of the workspace.   # the calling model chooses by it
//	tools: [read, write]         # all that it may use; enforced
//	maxIterations: 4             # rounds of tool calls; default 8
//	model: ""                    # default: the caller's
//	temperature: 0.2
//	summarize: verbatim          # or structured: a JSON object
//	inputSchema:                 # JSON Schema of the call; default: one text, task
//	  type: object
//	  properties: { path: { type: string }, language: { type: string } }
//	  required: [path, language]
//	---
//	You translate into {{.language}}. …
//
// A sub-agent is an agent like any other: a folder, a history, an inbox, the same
// turn code. Its id follows from the call's, so a call that a crash cut finds it at
// the next start and waits on; nothing is done twice. It has no sub-agent tools and
// starts nobody.
package subagent
