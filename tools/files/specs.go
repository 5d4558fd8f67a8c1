package files

import (
	"encoding/json"

	"daycare/tools"
)

// What the model is told is sent with every call, so it is kept short.

var (
	readSpec = tools.Spec{Name: "read", Replay: tools.ReadOnly, Parallel: true, MaxOutput: maxReadBytes + maxReadNote,
		Description: "Read a text file with line numbers, an image or a PDF; at most 2,000 lines or 50 KB.",
		Schema: json.RawMessage(`{"type":"object","properties":{
"path":{"type":"string"},
"offset":{"type":"integer","minimum":1,"description":"first line; page of a PDF"},
"limit":{"type":"integer","minimum":1}},
"required":["path"],"additionalProperties":false}`)}

	lsSpec = tools.Spec{Name: "ls", Replay: tools.ReadOnly, Parallel: true,
		Description: "List a folder.",
		Schema: json.RawMessage(`{"type":"object","properties":{
"path":{"type":"string"}},"additionalProperties":false}`)}

	globSpec = tools.Spec{Name: "glob", Replay: tools.ReadOnly, Parallel: true,
		Description: "Find files by name, newest first.",
		Schema: json.RawMessage(`{"type":"object","properties":{
"pattern":{"type":"string","description":"like **/*.go"},
"path":{"type":"string"}},
"required":["pattern"],"additionalProperties":false}`)}

	grepSpec = tools.Spec{Name: "grep", Replay: tools.ReadOnly, Parallel: true,
		Description: "Search file contents by regular expression (RE2). Skips binary and git-ignored files.",
		Schema: json.RawMessage(`{"type":"object","properties":{
"pattern":{"type":"string"},
"path":{"type":"string"},
"include":{"type":"string","description":"like *.go"},
"context":{"type":"integer","minimum":0,"maximum":20,"description":"lines around each match"},
"ignoreCase":{"type":"boolean"}},
"required":["pattern"],"additionalProperties":false}`)}

	// Writing the same text once more changes nothing: idempotent.
	writeSpec = tools.Spec{Name: "write", Writes: true, Replay: tools.Idempotent,
		Description: "Create or overwrite a file. Prefer edit for changes.",
		Schema: json.RawMessage(`{"type":"object","properties":{
"path":{"type":"string"},
"content":{"type":"string"}},
"required":["path","content"],"additionalProperties":false}`)}

	// An edit that was made finds its old text no more, or finds it again inside
	// the new one and doubles it: it must not be run twice.
	editSpec = tools.Spec{Name: "edit", Writes: true, Replay: tools.Once,
		Description: "Replace text in a file. old must match exactly and once, without line numbers. edits: several at once, all or none.",
		Schema: json.RawMessage(`{"type":"object","properties":{
"path":{"type":"string"},
"old":{"type":"string"},
"new":{"type":"string"},
"all":{"type":"boolean","description":"replace every match"},
"edits":{"type":"array","items":` +
			`{"type":"object","properties":{"old":{"type":"string"},"new":{"type":"string"},` +
			`"all":{"type":"boolean"}},"required":["old","new"],"additionalProperties":false}}},
"required":["path"],"additionalProperties":false}`)}

	// A patch that was applied does not fit any more, or fits again further down.
	patchSpec = tools.Spec{Name: "apply_patch", Writes: true, Replay: tools.Once,
		Description: "Change several files, all or none: *** Begin Patch, per file *** Add File: P (lines with +), *** " +
			"Delete File: P or *** Update File: P (and *** Move to: P) with hunks (@@ line before; lines with blank, - " +
			"or +), *** End Patch.",
		Schema: json.RawMessage(`{"type":"object","properties":{"patch":{"type":"string"}},` +
			`"required":["patch"],"additionalProperties":false}`)}
)
