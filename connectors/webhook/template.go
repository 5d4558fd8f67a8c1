package webhook

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"

	"daycare/engine/inbox"
)

// parseTemplate returns nil for an empty template. In what it returns, {{.a.b}}
// of something that is not there is "" instead of an error or "<no value>": every
// chain of fields has been replaced by a call of member.
func parseTemplate(text string) (*template.Template, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	t, err := template.New("template").Funcs(template.FuncMap{"member": member, "each": each, "index": index}).Parse(text)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "template: "))
	}

	for _, defined := range t.Templates() {
		if defined.Tree != nil {
			soften(defined.Root)
		}
	}

	return t, nil
}

// member follows a path of keys.
func member(v any, path ...string) any {
	for _, key := range path {
		o, _ := v.(object)
		v = o[key]
	}
	if v == nil {
		return ""
	}

	return v
}

// each makes what is not there an empty range.
func each(v any) any {
	if v == "" {
		return nil
	}
	return v
}

// index is the template language's, for payloads: what is not there is "".
func index(v any, keys ...any) any {
	for _, key := range keys {
		switch at := key.(type) {
		case string:
			v = member(v, at)
		case int:
			l, _ := v.(list)
			if at < 0 || at >= len(l) {
				return ""
			}
			v = l[at]
		default:
			return ""
		}
	}

	return member(v)
}

// soften replaces field chains below a node.
func soften(n parse.Node) {
	switch n := n.(type) {
	case *parse.ListNode:
		if n != nil {
			for _, child := range n.Nodes {
				soften(child)
			}
		}
	case *parse.ActionNode:
		softenPipe(n.Pipe)
	case *parse.TemplateNode:
		softenPipe(n.Pipe)
	case *parse.IfNode:
		softenBranch(&n.BranchNode)
	case *parse.WithNode:
		softenBranch(&n.BranchNode)
	case *parse.RangeNode:
		softenBranch(&n.BranchNode)
		n.Pipe.Cmds = append(n.Pipe.Cmds, pipeOf("each").Cmds...)
	}
}

func softenBranch(b *parse.BranchNode) {
	softenPipe(b.Pipe)
	soften(b.List)
	soften(b.ElseList)
}

func softenPipe(p *parse.PipeNode) {
	if p == nil {
		return
	}
	for _, command := range p.Cmds {
		for i, arg := range command.Args {
			command.Args[i] = softenArg(arg)
		}
	}
}

func softenArg(arg parse.Node) parse.Node {
	switch arg := arg.(type) {
	case *parse.FieldNode: // .a.b
		return memberOf(&parse.DotNode{NodeType: parse.NodeDot, Pos: arg.Pos}, arg.Ident)
	case *parse.VariableNode: // $x.a.b
		if len(arg.Ident) > 1 {
			path := arg.Ident[1:]
			arg.Ident = arg.Ident[:1:1]
			return memberOf(arg, path)
		}
	case *parse.ChainNode: // (…).a.b
		return memberOf(softenArg(arg.Node), arg.Field)
	case *parse.PipeNode:
		softenPipe(arg)
	}

	return arg
}

// memberOf is the parsed form of (member OF "a" "b").
func memberOf(of parse.Node, path []string) parse.Node {
	text := "member ."
	for _, key := range path {
		text += " " + strconv.Quote(key)
	}
	pipe := pipeOf(text)
	pipe.Cmds[0].Args[1] = of

	return pipe
}

func pipeOf(text string) *parse.PipeNode {
	trees, err := parse.Parse("", "{{"+text+"}}", "", "", map[string]any{"member": member, "each": each})
	if err != nil {
		panic(fmt.Sprintf("webhook: template call %q: %v", text, err)) // identifiers and quoted strings always parse
	}

	return trees[""].Root.Nodes[0].(*parse.ActionNode).Pipe
}

// bounded keeps a template from making more than an inbox takes.
type bounded struct{ strings.Builder }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > inbox.MaxItemBytes {
		return 0, inbox.ErrTooLarge
	}
	return b.Builder.Write(p)
}
