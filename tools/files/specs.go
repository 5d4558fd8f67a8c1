package files

import (
	"encoding/json"

	"daycare/tools"
)

// These texts are part of every model call, so they are short.

var (
	readSpec = tools.Spec{Name: "read", Replay: tools.ReadOnly, Parallel: true, MaxOutput: maxReadBytes + maxReadNote,
		Description: "Read a text file (with line numbers), an image or a PDF; at most 2,000 lines or 50 KB.",
		Schema: json.RawMessage(`{"type":"object","properties":{
"path":{"type":"string"},
"offset":{"type":"integer","minimum":1,"description":"first line to read; first page of a PDF"},
"limit":{"type":"integer","minimum":1}},
"required":["path"],"additionalProperties":false}`)}

	lsSpec = tools.Spec{Name: "ls", Replay: tools.ReadOnly, Parallel: true,
		Description: "List a folder.",
		Schema: json.RawMessage(`{"type":"object","properties":{
"path":{"type":"string"}},"additionalProperties":false}`)}

	globSpec = tools.Spec{Name: "glob", Replay: tools.ReadOnly, Parallel: true,
		Description: "Find files by name, newest first.",
		Schema: json.RawMessage(`{"type":"object","properties":{
"pattern":{"type":"string","description":"such as **/*.go"},
"path":{"type":"string"}},
"required":["pattern"],"additionalProperties":false}`)}

	grepSpec = tools.Spec{Name: "grep", Replay: tools.ReadOnly, Parallel: true,
		Description: "Search file contents by regular expression (RE2). Skips binary and git-ignored files.",
		Schema: json.RawMessage(`{"type":"object","properties":{
"pattern":{"type":"string"},
"path":{"type":"string"},
"include":{"type":"string","description":"names of files, such as *.go"},
"context":{"type":"integer","minimum":0,"maximum":20,"description":"lines before and after each match"},
"ignoreCase":{"type":"boolean"}},
"required":["pattern"],"additionalProperties":false}`)}

	// Writing the same text again changes nothing: idempotent.
	writeSpec = tools.Spec{Name: "write", Writes: true, Replay: tools.Idempotent,
		Description: "Create or overwrite a file. Prefer edit for changes.",
		Schema: json.RawMessage(`{"type":"object","properties":{
"path":{"type":"string"},
"content":{"type":"string"}},
"required":["path","content"],"additionalProperties":false}`)}

	// After an edit the old text is gone, or occurs again inside the new one and would be
	// replaced again: an edit must not run twice.
	editSpec = tools.Spec{Name: "edit", Writes: true, Replay: tools.Once,
		Description: "Replace text in a file. old must match exactly, without line numbers, and occur once. " +
			"edits: several replacements, all or none.",
		Schema: json.RawMessage(`{"type":"object","properties":{
"path":{"type":"string"},
"old":{"type":"string"},
"new":{"type":"string"},
"all":{"type":"boolean","description":"replace every match"},
"edits":{"type":"array","items":` +
			`{"type":"object","properties":{"old":{"type":"string"},"new":{"type":"string"},` +
			`"all":{"type":"boolean"}},"required":["old","new"],"additionalProperties":false}}},
"required":["path"],"additionalProperties":false}`)}

	// A patch that was applied no longer applies, or applies again further down.
	patchSpec = tools.Spec{Name: "apply_patch", Writes: true, Replay: tools.Once,
		Description: "Change several files, all or none. Format: *** Begin Patch, per file *** Add File: P (lines with +), *** " +
			"Delete File: P or *** Update File: P (and *** Move to: P) with hunks (@@ line before; lines with blank, - " +
			"or +), *** End Patch.",
		Schema: json.RawMessage(`{"type":"object","properties":{"patch":{"type":"string"}},` +
			`"required":["patch"],"additionalProperties":false}`)}
)
