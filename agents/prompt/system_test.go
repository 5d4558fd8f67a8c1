package prompt

import (
	"encoding/json"
	"strings"
	"testing"

	"daycare/agents/providers"
)

func foregroundSample() Definition {
	return Definition{
		Name: "Ada's assistant", Handle: "0/", Role: User,
		Workspace: "/home/ada/projects/website", OS: "linux", Peers: true,
	}
}

func backgroundSample() Definition {
	return Definition{
		Name: "log-reader", Handle: "0/1", Role: Subagent, Parent: "tz4a98xxat96iws9zmbrgj3a",
		Workspace: "/home/ada/projects/website", OS: "linux", Peers: true,
	}
}

func TestSystem(t *testing.T) {
	withFiles := foregroundSample()
	withFiles.Peers = false
	withFiles.Files = Files{
		Soul:   "Dry humour. Never flatter.\n",
		User:   "Ada, reads e-mail twice a day.\n",
		Rules:  "Ask before deleting anything.\n",
		Agents: "Run `make check` before you say done.\n",
	}
	cron := backgroundSample()
	cron.Role, cron.Parent, cron.Peers = Cron, "", false
	cron.Prompt = "Summarise what is waiting in the queue."

	for name, d := range map[string]Definition{
		"system-foreground": foregroundSample(),
		"system-background": backgroundSample(),
		"system-files":      withFiles,
		"system-cron":       cron,
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, []byte(System(d))) })
	}
}

// The prompt is paid for with every call, so its size has a bound. Tokens are
// estimated as everywhere here: characters / 4.
func TestSystemSize(t *testing.T) {
	const alone, withTools = 600, 1500
	for name, d := range map[string]Definition{"foreground": foregroundSample(), "background": backgroundSample()} {
		sys := System(d)
		var e estimate
		e.fixed(sys, nil)
		if n := e.tokens(); n >= alone {
			t.Errorf("%s: the system prompt has %d tokens, allowed are fewer than %d: shorten the texts in system.go", name, n, alone)
		} else {
			t.Logf("%s: %d tokens", name, n)
		}

		e.fixed(sys, sampleTools())
		if n := e.tokens(); n >= withTools {
			t.Errorf("%s: prompt and tools have %d tokens, allowed are fewer than %d", name, n, withTools)
		} else {
			t.Logf("%s: %d tokens with tools", name, n)
		}
	}
}

func TestSystemCutsLongFiles(t *testing.T) {
	d := foregroundSample()
	d.Files.Rules = strings.Repeat("Zwölf Boxkämpfer jagen Viktor.\n", 2000)
	sys := System(d)
	if len(sys) > MaxFile+4096 {
		t.Errorf("system prompt of %d bytes: a file of %d bytes was not cut at %d", len(sys), len(d.Files.Rules), MaxFile)
	}
	if !strings.Contains(sys, "Viktor.\n[cut here: the first ") {
		t.Error("the cut is not marked at the end of a line")
	}

	d.Files.Rules = strings.Repeat("ö", MaxFile) // no line to cut at, and MaxFile is in no rune's middle only by luck
	if sys := System(d); strings.ContainsRune(sys, '\uFFFD') || !strings.Contains(sys, "[cut here") {
		t.Error("the cut went through a character")
	}
}

// A tool that only peers have must not be spoken of where it does not exist.
func TestSystemNamesOnlyExistingTools(t *testing.T) {
	for _, d := range []Definition{foregroundSample(), backgroundSample()} {
		d.Peers = false
		if sys := System(d); strings.Contains(sys, "send_agent_message") {
			t.Errorf("%s: send_agent_message is mentioned without Peers", d.Role)
		}
	}
}

// sampleTools are specs like those of the file and shell tools, with texts of
// the usual length.
func sampleTools() []providers.Tool {
	spec := func(name, description, properties, required string) providers.Tool {
		return providers.Tool{Name: name, Description: description, Schema: json.RawMessage(
			`{"type":"object","properties":{` + properties + `},"required":[` + required + `],"additionalProperties":false}`)}
	}
	const path = `"path":{"type":"string","description":"File, relative to the workspace or absolute"}`
	return []providers.Tool{
		spec("read", "Read a text file or look at an image. Long files come in pieces; offset goes on from a line.",
			path+`,"offset":{"type":"integer","minimum":1,"description":"First line"},"limit":{"type":"integer","minimum":1,`+
				`"description":"Lines, at most 2000"}`, `"path"`),
		spec("write", "Write a whole file. Makes missing folders; replaces what is there.",
			path+`,"content":{"type":"string"}`, `"path","content"`),
		spec("edit", "Replace text in a file. old must occur exactly once, unless all is true. Read the file first.",
			path+`,"old":{"type":"string","description":"Exact text to replace"},"new":{"type":"string"},"all":{"type":"boolean",`+
				`"description":"Replace every occurrence"}`, `"path","old","new"`),
		spec("ls", "List a folder: names, sizes, kinds.", `"path":{"type":"string","description":"Folder; default: the workspace"}`, ``),
		spec("glob", "Find files by pattern, such as src/**/*.go. Newest first.",
			`"pattern":{"type":"string"},"path":{"type":"string","description":"Folder to begin in"}`, `"pattern"`),
		spec("grep", "Search file contents with a regular expression (RE2).",
			`"pattern":{"type":"string"},"path":{"type":"string","description":"File or folder"},"glob":{"type":"string",`+
				`"description":"Only files like this"},"context":{"type":"integer","minimum":0,"description":"Lines around a hit"},`+
				`"ignoreCase":{"type":"boolean"}`, `"pattern"`),
		spec("exec", "Run a command with sh -c in the workspace, inside a sandbox without network. Returns output and "+
			"exit status. Start servers and long jobs with background.",
			`"command":{"type":"string"},"timeoutMs":{"type":"integer","minimum":1,"description":"Default 120000"},`+
				`"background":{"type":"boolean","description":"Return at once; the job goes on"}`, `"command"`),
	}
}
