package shell

import (
	"cmp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"daycare/engine/lazyregexp"
	"daycare/engine/permission"
)

// Commands are parsed to say what they do and to compare them with @exec: rules,
// segment by segment. That is a convenience for users, never a wall: what a
// program does, its words do not say.

// maxParsed is how long a command line is parsed, in bytes: the parser goes as deep as the commands in it are nested, and where
// the stack ends, so does the daemon.
const maxParsed = 64 << 10

// segments are the simple commands that a command line is made of, as words. plain
// is false if it holds something whose effect the words do not show, which is all but what
// is known to be nothing of the kind: variables (those of a loop, too), substitutions,
// assignments, functions, tests ([[ evaluates numbers), or output to a file. The segments
// found are returned all the same; of a command that is too long, none are.
func segments(command string) (list [][]string, plain bool) {
	if len(command) > maxParsed {
		return nil, false
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), "")
	if err != nil {
		return nil, false
	}
	plain = !strings.ContainsRune(command, '\r') // a space for the parser, for the shell a letter as others
	syntax.Walk(file, func(node syntax.Node) bool {
		switch n := node.(type) {
		case nil, *syntax.File, *syntax.Stmt, *syntax.Word, *syntax.Lit, *syntax.SglQuoted, *syntax.DblQuoted, *syntax.Comment:
		case *syntax.BinaryCmd, *syntax.Block, *syntax.Subshell, *syntax.IfClause, *syntax.WhileClause, *syntax.CaseClause,
			*syntax.CaseItem, *syntax.TimeClause:
		case *syntax.CallExpr:
			words, literal := literals(n.Args)
			if len(words) > 0 {
				list = append(list, words)
			}
			plain = plain && literal && len(n.Assigns) == 0
		case *syntax.Redirect:
			plain = plain && harmless(n)
		default:
			plain = false
		}

		return true
	})

	return list, plain && len(list) > 0
}

// literals are words without quotes; a word that the shell fills in ends the list.
func literals(words []*syntax.Word) (list []string, all bool) {
	for _, w := range words {
		text, ok := literal(w)
		if !ok {
			return list, false
		}
		list = append(list, text)
	}

	return list, true
}

// literal is the text that a word stands for, if nothing is filled in.
func literal(w *syntax.Word) (string, bool) {
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if strings.ContainsAny(p.Value, "*?[{~\\") {
				return "", false // patterns name files, a backslash hides
			}
			b.WriteString(p.Value)
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, inner := range p.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok || p.Dollar || strings.ContainsRune(lit.Value, '\\') {
					return "", false
				}
				b.WriteString(lit.Value)
			}
		default:
			return "", false
		}
	}

	return b.String(), true
}

// harmless reports whether a redirection changes no file: input, to another stream,
// or to nowhere. Where a stream is named by anything but its number, the shell takes
// that for a file: ">&out" writes one. A name in braces before it is a variable to set.
func harmless(r *syntax.Redirect) bool {
	if r.N != nil && strings.HasPrefix(r.N.Value, "{") {
		return false
	}
	target, ok := literal(r.Word)
	switch r.Op {
	case syntax.WordHdoc:
		return true
	case syntax.RdrIn: // the shell makes connections of some names
		return ok && !strings.HasPrefix(target, "/dev/tcp/") && !strings.HasPrefix(target, "/dev/udp/")
	case syntax.DplOut, syntax.DplIn:
		return ok && stream.MatchString(target)
	}

	return ok && target == "/dev/null"
}

// stream is the number of an open file that is copied, moved or closed.
var stream = lazyregexp.New(`^(?:[0-9]+-?|-)$`)

// granted reports whether rules allow a command without asking: each of its
// segments begins with the words of one, or the whole is one. Scripts that the words of
// a rule name must have the content that the rule was given for.
func granted(set permission.Set, a arguments, r resolved) bool {
	if len(a.Env) > 0 || a.Stdin != "" {
		return false // a variable can make any program another one, its input most of them
	}
	trimmed := func(command string) string { return strings.Trim(command, permission.Blanks) }
	whole := trimmed(a.Command)
	if slices.ContainsFunc(set.Exec, func(rule string) bool { return trimmed(rule) == whole && kept(set, rule, r.pins()) }) {
		return true
	}

	return r.plain && !slices.ContainsFunc(r.segments, func(s segment) bool { return coveredBy(set, s) == "" })
}

// coveredBy is the rule that covers a segment; "" for none.
func coveredBy(set permission.Set, s segment) string {
	for _, rule := range set.Exec {
		n := begins(rule, s.words)
		var named []permission.Script
		for _, p := range s.scripts {
			if p.word < n {
				named = append(named, p.Script)
			}
		}

		if n > 0 && kept(set, rule, named) {
			return rule
		}
	}

	return ""
}

// begins is how many words a rule has, if the words of a command begin with them;
// else 0.
func begins(rule string, words []string) int {
	prefix := strings.Fields(rule)
	if len(prefix) > len(words) || !slices.Equal(prefix, words[:len(prefix)]) {
		return 0
	}

	return len(prefix)
}

// kept reports whether a rule was given for these contents of the scripts.
func kept(set permission.Set, rule string, now []permission.Script) bool {
	var given []permission.Script
	for _, g := range set.Grants {
		if g.SHA256 == "" && g.Tag == (permission.Exec{Prefix: strings.TrimSpace(rule)}).Tag() {
			given = append(given, g.Scripts...)
		}
	}

	return !slices.ContainsFunc(now, func(s permission.Script) bool {
		return s.SHA256 == permission.Unreadable || !slices.Contains(given, s)
	})
}

// asks is the rule to ask for: that of the first segment that none covers yet.
func asks(set permission.Set, command string, r resolved) string {
	for _, s := range r.segments {
		if name := nameOf(s.words); name != "" && coveredBy(set, s) == "" {
			return name
		}
	}

	return cmp.Or(firstWords(command), "a command of signs that cannot be shown")
}

// does names the programs of a command, for the user who is asked.
func does(command string) string {
	list, _ := segments(command)
	var names []string
	for _, words := range list {
		if name := nameOf(words); len(names) <= 8 && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}

	if len(names) < 2 {
		return "run a command"
	}
	if len(names) > 8 {
		names = append(names[:8], "…")
	}

	return "run commands: " + strings.Join(names, ", ")
}
