package shell

import (
	"cmp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"daycare/engine/permission"
)

// Commands are parsed to say what they do and to compare them with @exec: rules,
// segment by segment. That is a convenience for people, never a wall: what a
// program does, its words do not say.

// segments are the simple commands that a command line is made of, as words. plain
// is false if it holds something whose effect the words do not show: variables,
// substitutions, assignments, functions, or output to a file. The segments found
// are returned all the same.
func segments(command string) (list [][]string, plain bool) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), "")
	if err != nil {
		return nil, false
	}
	plain = true
	syntax.Walk(file, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.CallExpr:
			words, literal := literals(n.Args)
			if len(words) > 0 {
				list = append(list, words)
			}
			plain = plain && literal && len(n.Assigns) == 0
		case *syntax.Redirect:
			plain = plain && harmless(n)
		case *syntax.FuncDecl, *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ParamExp, *syntax.ArithmExp, *syntax.ArithmCmd,
			*syntax.DeclClause, *syntax.LetClause, *syntax.CoprocClause, *syntax.TestDecl:
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
// or to nowhere.
func harmless(r *syntax.Redirect) bool {
	switch r.Op {
	case syntax.RdrIn, syntax.DplOut, syntax.DplIn, syntax.WordHdoc:
		return true
	}
	target, ok := literal(r.Word)
	return ok && target == "/dev/null"
}

// granted reports whether rules allow a command without asking: each of its
// segments begins with the words of one, or the whole is one.
func granted(set permission.Set, a arguments) bool {
	if len(a.Env) > 0 {
		return false // a variable can make any program another one
	}
	whole := strings.TrimSpace(a.Command)
	if slices.ContainsFunc(set.Exec, func(rule string) bool { return strings.TrimSpace(rule) == whole }) {
		return true
	}
	list, plain := segments(a.Command)
	return plain && !slices.ContainsFunc(list, func(words []string) bool { return !covered(set.Exec, words) })
}

// covered reports whether a segment begins with the words of a rule.
func covered(rules []string, words []string) bool {
	return slices.ContainsFunc(rules, func(rule string) bool {
		prefix := strings.Fields(rule)
		return len(prefix) > 0 && len(prefix) <= len(words) && slices.Equal(prefix, words[:len(prefix)])
	})
}

// asks is the rule to ask for: that of the first segment that none covers yet.
func asks(set permission.Set, command string) string {
	list, _ := segments(command)
	for _, words := range list {
		if name := firstWords(strings.Join(words, " ")); name != "" && !covered(set.Exec, words) {
			return name
		}
	}
	return cmp.Or(firstWords(command), "a command of signs that cannot be shown")
}

// does names the programs of a command, for the person who is asked.
func does(command string) string {
	list, _ := segments(command)
	var names []string
	for _, words := range list {
		if name := firstWords(strings.Join(words, " ")); !slices.Contains(names, name) {
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
