package scripted

import (
	"regexp"
	"strings"

	"daycare/engine/lazyregexp"
)

// intent is what a request in plain English asks for.
type intent struct {
	do      verb
	path    string
	what    string // the word to look for, the text to write, the command
	old     string // replace
	literal bool   // what stood in quotes, or is to be taken as it is
	all     bool   // replace every one
	lines   int    // show: how many; 0: all
}

type verb string

const (
	talk    verb = ""        // no tool is needed
	show    verb = "show"    // a file's content
	about   verb = "about"   // what a file is: heading, first paragraph, lines
	says    verb = "says"    // the lines of a file about something
	list    verb = "list"    // a folder
	find    verb = "find"    // files by name
	search  verb = "search"  // lines in files
	write   verb = "write"   // a new file
	replace verb = "replace" // text in a file
	run     verb = "run"     // a command
	vague   verb = "vague"   // a command, but which?
	outside verb = "outside" // a change that somebody unknown asks for
)

// pattern is one way to ask.
type pattern struct {
	do verb
	re *regexp.Regexp
	ok func(intent) bool // nil: always
}

const (
	quoted = "\"[^\"]+\"|'[^']+'|`[^`]+`|“[^”]+”"
	bare   = "[^\\s\"'`“”]+"
	anyArg = `(?:` + quoted + `|` + bare + `)`
	file   = `(?:(?:the|a|an|my|this)\s+)?(?:new\s+)?(?:file\s+)?(?:called\s+|named\s+)?`
	folder = `(?:\s+(?:folder|directory|dir|file))?`
	here   = `here|there|this (?:folder|directory|place|workspace|project)|(?:the|my) (?:workspace|(?:current |working )?(?:folder|directory)|project)`
)

// grammar compiles all ways to ask; the first that fits counts. It is called once
// for each offline model.
func grammar() []pattern {
	p := func(do verb, expr string, ok func(intent) bool) pattern {
		return pattern{do, regexp.MustCompile(`(?is)^` + expr + `$`), ok}
	}
	return []pattern{
		p(vague, `(?:run|execute)\s+(?:the|my|all|some|our)\s+\w+`, nil),
		p(run, `(?:run|execute|exec)\s+(?:(?:the\s+)?(?:shell\s+)?command:?\s+)?(?P<what>.+)`, nil),
		p(run, `[$!]\s*(?P<what>.+)`, nil),
		p(replace, `(?:replace|change)\s+(?P<all>all\s+|every\s+)?(?P<old>`+quoted+`|.+?)\s+(?:with|to|by)\s+(?P<what>`+quoted+`|.+)\s+in\s+`+file+`(?P<path>`+anyArg+`)`, nil),
		p(write, `(?:create|make|write|save)\s+`+file+`(?P<path>`+anyArg+`)\s+(?:with|containing|that says|saying|that contains)\s+(?:the\s+)?(?:text|contents?|words?|line)?:?\s*(?P<what>.+)`, hasName),
		p(write, `(?:write|save|put|add)\s+(?:the\s+(?:text|words?|line)\s+)?(?P<what>`+quoted+`|.+)\s+(?:to|into|in|as)\s+`+file+`(?P<path>`+anyArg+`)`, hasName),
		p(write, `(?:create|make|touch)\s+(?:an?\s+)?(?:new\s+)?(?:empty\s+)?(?:file\s+)?(?:called\s+|named\s+)?(?P<path>`+anyArg+`)`, hasName),
		p(says, `what does\s+`+file+`(?P<path>`+anyArg+`)\s+say\s+about\s+(?P<what>.+)`, nil),
		p(says, `does\s+`+file+`(?P<path>`+anyArg+`)\s+(?:mention|contain|say(?: anything about)?)\s+(?P<what>.+)`, nil),
		p(list, `(?:ls|dir)(?:\s+-\w+)*(?:\s+(?P<path>`+anyArg+`))?`, nil),
		p(list, `(?:list|show|what are)(?:\s+me)?(?:\s+(?:all|the|my))*\s+(?:files|folders|entries|everything|contents)(?:\s+(?:and|or)\s+(?:files|folders|directories))?(?:\s+(?:in|under|inside)\s+(?:the\s+)?(?P<path>`+here+`|`+anyArg+`)`+folder+`)?(?:\s+(?:here|there))?`, nil),
		p(list, `(?:what|which)\s+(?:files|folders)(?:\s+(?:are|exist|is|do (?:we|you|i) have))*(?:\s+(?:here|there))?(?:\s+(?:in|under|inside)\s+(?:the\s+)?(?P<path>`+here+`|`+anyArg+`)`+folder+`)?`, nil),
		p(list, `what(?:'s|’s| is| do you see)\s+(?:in\s+)?(?P<path>`+here+`)`, nil),
		p(find, `(?:list|find|show)(?:\s+me)?(?:\s+(?:all|the|every|my))*\s+(?P<what>`+anyArg+`)\s+files?(?:\s+(?:in|under)\s+(?P<path>`+anyArg+`)`+folder+`)?`, nil),
		p(find, `how many\s+(?P<what>`+bare+`)\s+files.*`, nil),
		p(list, `(?:list|ls|show(?:\s+me)?)\s+(?:the\s+)?(?:folder|directory)\s+(?P<path>`+anyArg+`)`, nil),
		p(search, `(?:search|look|grep)\s+(?:in\s+)?(?P<path>`+anyArg+`)\s+for\s+(?P<what>.+)`,
			func(in intent) bool { return pathy(in.path) }),
		p(search, `(?:search|grep|look)\s+(?:for\s+)?(?P<what>`+quoted+`|.+?)(?:\s+(?:in|inside|under|within)\s+`+file+`(?P<path>`+here+`|`+anyArg+`)`+folder+`)?`, nil),
		p(search, `where\s+(?:is|are|do (?:we|i|you))\s+(?P<what>`+anyArg+`)\s+(?:used|defined|mentioned|called|declared|use|define|mention)`, nil),
		p(search, `find\s+(?P<what>`+quoted+`|\S+)\s+in\s+`+file+`(?P<path>`+anyArg+`)`+folder,
			func(in intent) bool { return in.literal || pathy(in.path) && !pathy(in.what) }),
		p(find, `(?:find|locate|where(?:'s|’s| is| are))\s+(?:all\s+|every\s+)?`+file+`(?:files\s+)?(?:named\s+|called\s+|matching\s+|like\s+)?(?P<what>`+anyArg+`)(?:\s+files?)?(?:\s+(?:in|under)\s+(?P<path>`+anyArg+`)`+folder+`)?`, nil),
		p(show, `(?:show|read|print)(?:\s+me)?\s+(?:the\s+)?first\s+(?P<lines>\d+)\s+lines\s+of\s+`+file+`(?P<path>`+anyArg+`)`, nil),
		p(show, `(?:read|show|open|cat|print|display|view|type)\s+(?:me\s+)?(?:the\s+)?(?:contents?\s+of\s+)?`+file+`(?P<path>`+anyArg+`)(?:\s+file)?(?:\s+(?:to|for) me)?`, nil),
		p(about, `what(?:'s|’s| is| are| stands)?\s+(?:in|inside|written in|the contents? of)\s+`+file+`(?P<path>`+anyArg+`)`+folder, nil),
		p(about, `what does\s+`+file+`(?P<path>`+anyArg+`)\s+(?:contain|say|do|hold|have in it)`, nil),
		p(about, `how (?:many lines|long)\s+(?:does|has|is|are(?: there)? in|in)\s+`+file+`(?P<path>`+anyArg+`)(?:\s+have)?`, nil),
		p(about, `(?:summari[sz]e|explain|describe|tell me about|what(?:'s|’s| is))\s+`+file+`(?P<path>`+anyArg+`)(?:\s+about)?`, hasName),
	}
}

// hasName guards the patterns that would take any word for a file.
func hasName(in intent) bool { return pathy(in.path) || in.do == write && in.literal }

var (
	polite = lazyregexp.New(`(?i)^(?:(?:hi|hello|hey|ok|okay|and|then|now|so)\b[ ,!.]*|please\b[ ,]*|(?:can|could|would|will) you\b[ ,]*|i (?:want|need) you to\b[ ,]*|i(?:'d|’d| would) like (?:you )?to\b[ ,]*|let(?:'s|’s)\b[ ,]*)+`)
	coda   = lazyregexp.New(`(?i)[\s,]*(?:please|for me|thanks|thank you|[?!]|\.(?:\s|$))+\s*$`)
	// endings are what the word before "files" means.
	endings = map[string]string{"go": "go", "golang": "go", "markdown": "md", "md": "md", "python": "py", "javascript": "js",
		"typescript": "ts", "yaml": "{yaml,yml}", "json": "json", "text": "txt", "txt": "txt", "html": "html", "css": "css",
		"shell": "sh", "rust": "rs", "java": "java", "c": "c", "image": "{png,jpg,jpeg,gif,webp}", "test": "_test.go"}
)

// understand finds what one request asks for.
func understand(patterns []pattern, text string) intent {
	text = strings.TrimSpace(text)
	short := polite.ReplaceAllString(text, "")
	if short == "" {
		return intent{}
	}
	trimmed := coda.ReplaceAllString(short, "")
	for _, p := range patterns {
		from := trimmed
		if p.do == run || p.do == write || p.do == replace {
			from = short // a text or a command may end in a question mark
			if p.re.FindStringSubmatch(from) == nil {
				from = trimmed
			}
		}
		m := p.re.FindStringSubmatch(from)
		if m == nil {
			continue
		}
		in := intent{do: p.do}
		for i, name := range p.re.SubexpNames() {
			in.set(name, m[i])
		}
		if p.ok == nil || p.ok(in) {
			return in.settle()
		}
	}
	return intent{}
}

func (in *intent) set(name, value string) {
	plain, wasQuoted := unquote(strings.TrimSpace(value))
	switch name {
	case "path":
		in.path = plain
		if !wasQuoted {
			in.path = strings.TrimRight(plain, "?!,;:")
			if strings.HasSuffix(in.path, ".") && strings.Trim(in.path, "./") != "" {
				in.path = strings.TrimRight(in.path, ".")
			}
		}
		in.literal = in.literal || wasQuoted
	case "what":
		in.what, in.literal = plain, wasQuoted
	case "old":
		in.old = plain
	case "all":
		in.all = value != ""
	case "lines":
		for _, c := range value {
			in.lines = min(in.lines*10+int(c-'0'), 2000)
		}
	}
}

var hereOnly = lazyregexp.New(`(?i)^(?:` + here + `)$`)

// settle turns words into what tools want.
func (in intent) settle() intent {
	if hereOnly.MatchString(in.path) {
		in.path = ""
	}
	switch in.do {
	case list:
		if in.path == "" {
			in.path = "."
		}
	case about, show:
		if strings.HasSuffix(in.path, "/") || in.path == "." || in.path == ".." {
			in.do = list
		}
	case find:
		in.what = globFor(in.what)
	case says:
		in.what = strings.Trim(in.what, " .?!\"'`")
	case write:
		if in.what != "" && !strings.HasSuffix(in.what, "\n") {
			in.what += "\n"
		}
	}
	return in
}

// globFor makes a pattern of what a person calls files.
func globFor(what string) string {
	if ending, ok := endings[strings.ToLower(strings.TrimPrefix(what, "."))]; ok {
		if strings.HasPrefix(ending, "_") {
			return "**/*" + ending
		}
		return "**/*." + ending
	}
	switch {
	case strings.HasPrefix(what, ".") && !strings.Contains(what, "/"):
		return "**/*" + what
	case strings.Contains(what, "/"):
		return strings.TrimPrefix(what, "./")
	case strings.ContainsAny(what, "*?["):
		return "**/" + what
	case strings.Contains(what, "."):
		return "**/" + what
	}
	return "**/*" + what + "*"
}

// pathy reports whether a word looks like a file or folder.
func pathy(word string) bool {
	if word == "" {
		return false
	}
	if strings.Contains(word, "/") || word == "." {
		return true
	}
	switch strings.ToLower(word) {
	case "readme", "license", "licence", "makefile", "dockerfile", "changelog", "todo", "notes":
		return true
	}
	i := strings.LastIndexByte(word, '.')
	return i >= 0 && i+1 < len(word) && len(word)-i <= 12
}

// unquote takes one pair of quotes off that encloses all of s.
func unquote(s string) (string, bool) {
	for _, q := range [][2]string{{`"`, `"`}, {"'", "'"}, {"`", "`"}, {"“", "”"}} {
		inner, ok := strings.CutPrefix(s, q[0])
		if inner, ok2 := strings.CutSuffix(inner, q[1]); ok && ok2 && len(s) > len(q[0]) && !strings.Contains(inner, q[1]) {
			return inner, true
		}
	}
	return s, false
}
