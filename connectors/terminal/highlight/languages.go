package highlight

import (
	"strings"
	"sync"
)

// A Language is what its text is looked through for.
type Language struct {
	comments []string  // what begins a comment that ends with the line
	block    [2]string // what begins and ends a comment over lines
	quotes   []quote   // the longer ones first
	words    map[string]bool
	start    func(x *lexer) // looks at the beginning of a line
	style
}

// A style is what is special in a language.
type style struct {
	apart   bool // a comment begins after a space only
	anyCase bool // keywords may be written in any case
	keys    bool // what stands before a colon is a keyword
	dashes  bool // names have dashes in them
	markup  bool // there are tags, and text between them
	prose   bool // digits are text
}

// A quote is how a string is written.
type quote struct {
	open, close string
	raw         bool // a backslash is a character like any other
	lines       bool // it continues over line ends
	short       int  // it ends within so many bytes, or is not one
}

func (l *Language) has(word string) bool {
	if l.anyCase {
		word = strings.ToLower(word)
	}
	return l.words[word]
}

var known sync.Map // name to *Language

// Named is the language of this name, as it follows the marks of a code block; nil if it is
// not known.
func Named(name string) *Language {
	name = strings.ToLower(strings.Trim(name, "{.}"))
	if l, ok := known.Load(name); ok {
		return l.(*Language)
	}
	build, words := of(name)
	if build == nil {
		return nil
	}
	l := build()
	l.words = map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		l.words[word] = true
	}
	known.Store(name, l)
	return l
}

// of is how a language is made, and its keywords; nil if it is not known.
func of(name string) (build func() *Language, words string) {
	switch name {
	case "go", "golang":
		return goLike, `break case chan const continue default defer else fallthrough for func go goto if import interface
			map package range return select struct switch type var nil true false iota any error string bool byte rune
			int int8 int16 int32 int64 uint uint8 uint16 uint32 uint64 uintptr float32 float64 append len cap make new`
	case "js", "javascript", "jsx", "mjs", "ts", "typescript", "tsx":
		return goLike, `async await break case catch class const continue debugger default delete do else enum export
			extends false finally for from function get if implements import in instanceof interface let new null of
			private protected public readonly return set static super switch this throw true try type typeof undefined
			var void while with yield as any boolean number string unknown never`
	case "python", "py", "python3":
		return python, `and as assert async await break case class continue def del elif else except False finally for from
			global if import in is lambda match None nonlocal not or pass raise return True try while with yield self`
	case "sh", "bash", "shell", "zsh", "console", "shellscript", "dockerfile", "makefile", "make":
		return shell, `if then else elif fi for while until do done case esac in function return break continue exit export
			local readonly set unset shift trap eval exec source echo cd test true false sudo
			FROM RUN COPY ADD CMD ENTRYPOINT ENV ARG WORKDIR EXPOSE VOLUME USER LABEL`
	case "json", "jsonc", "json5", "jsonl":
		return json, `true false null`
	case "yaml", "yml", "toml", "ini":
		return yaml, `true false null yes no on off`
	case "sql", "sqlite", "postgres", "postgresql", "mysql":
		return sql, `select from where and or not in is null as on join left right inner outer full cross group by order having
			limit offset insert into values update set delete create table index view drop alter add column primary key
			foreign references unique default constraint check distinct union all case when then else end exists between
			like asc desc begin commit rollback with recursive returning if integer text varchar boolean real blob`
	case "rust", "rs":
		return rust, `as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod
			move mut pub ref return self Self static struct super trait true type unsafe use where while i8 i16 i32 i64
			i128 u8 u16 u32 u64 u128 isize usize f32 f64 bool char str String Vec Option Result Some None Ok Err Box`
	case "c", "h", "cpp", "c++", "cc", "hpp", "java", "cs", "csharp", "kotlin", "swift", "php", "zig", "proto":
		return cLike, `auto break case char const continue default do double else enum extern float for goto if inline int long
			register return short signed sizeof static struct switch typedef union unsigned void volatile while bool true
			false NULL nullptr class namespace template typename public private protected virtual override new delete
			using try catch throw this operator include define ifdef ifndef endif undef pragma import package extends
			implements interface final abstract boolean byte String null var let fun val func function fn pub message`
	case "css", "scss", "less":
		return css, `important media import keyframes supports font-face from to and not`
	case "html", "xml", "svg", "xhtml", "vue":
		return markup, ``
	case "markdown", "md":
		return markdown, ``
	}

	return nil, ""
}

var double, single = quote{open: `"`, close: `"`}, quote{open: "'", close: "'"}

func goLike() *Language {
	return &Language{comments: []string{"//"}, block: [2]string{"/*", "*/"},
		quotes: []quote{double, single, {open: "`", close: "`", raw: true, lines: true}}}
}

func cLike() *Language {
	return &Language{comments: []string{"//"}, block: [2]string{"/*", "*/"},
		quotes: []quote{double, {open: "'", close: "'", short: 12}}}
}

func rust() *Language {
	return &Language{comments: []string{"//"}, block: [2]string{"/*", "*/"},
		quotes: []quote{{open: `r#"`, close: `"#`, raw: true, lines: true}, {open: `"`, close: `"`, lines: true},
			{open: "'", close: "'", short: 4}}}
}

func python() *Language {
	return &Language{comments: []string{"#"}, quotes: []quote{{open: `"""`, close: `"""`, lines: true},
		{open: "'''", close: "'''", lines: true}, double, single}}
}

func shell() *Language {
	return &Language{comments: []string{"#"}, quotes: []quote{double, {open: "'", close: "'", raw: true}},
		style: style{apart: true, dashes: true}}
}

func json() *Language {
	return &Language{comments: []string{"//"}, block: [2]string{"/*", "*/"}, quotes: []quote{double, single},
		style: style{keys: true}}
}

func yaml() *Language {
	return &Language{comments: []string{"#"}, quotes: []quote{double, {open: "'", close: "'", raw: true, short: 1 << 20}},
		style: style{apart: true, anyCase: true, keys: true, dashes: true}, start: section}
}

func sql() *Language {
	return &Language{comments: []string{"--"}, block: [2]string{"/*", "*/"},
		quotes: []quote{{open: "'", close: "'", raw: true}, double}, style: style{anyCase: true}}
}

func css() *Language {
	return &Language{comments: []string{"//"}, block: [2]string{"/*", "*/"}, quotes: []quote{double, single},
		style: style{apart: true, keys: true, dashes: true}}
}

func markup() *Language {
	return &Language{block: [2]string{"<!--", "-->"}, quotes: []quote{{open: `"`, close: `"`, raw: true, lines: true},
		{open: "'", close: "'", raw: true, lines: true}}, style: style{markup: true, dashes: true}}
}

func markdown() *Language {
	return &Language{quotes: []quote{{open: "```", close: "```", raw: true, lines: true},
		{open: "`", close: "`", raw: true}}, style: style{prose: true}, start: heading}
}

// section takes a line that names a section, as in ini and toml.
func section(x *lexer) {
	line := strings.TrimSpace(x.line)
	if strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]") && !strings.Contains(line, ",") {
		x.take(len(x.line), Keyword)
	}
}

// heading takes a line that is a heading or a quotation.
func heading(x *lexer) {
	switch {
	case strings.HasPrefix(x.line, "#"):
		x.take(len(x.line), Keyword)
	case strings.HasPrefix(x.line, ">"):
		x.take(len(x.line), Comment)
	}
}
