package telegramtest

import (
	"fmt"
	"html"
	"slices"
	"strings"

	"daycare/engine/lazyregexp"
)

var (
	tagRule    = lazyregexp.New(`^<(/?)([a-z-]+)( [a-z]+="[^"<>]*")?>`)
	entityRule = lazyregexp.New(`^&(lt|gt|amp|quot|#[0-9]+|#x[0-9a-fA-F]+);`)
)

// mayHold is which attribute a tag may have.
var mayHold = map[string]string{
	"b": "", "strong": "", "i": "", "em": "", "u": "", "ins": "", "s": "", "strike": "", "del": "", "tg-spoiler": "",
	"a": "href", "code": "class", "pre": "", "blockquote": "",
}

// ParseHTML reads a text as the Bot API does with parse_mode HTML and returns what
// a user sees. It errors where the Bot API answers "can't parse entities", and
// on nestings that it documents as not allowed.
func ParseHTML(source string) (shown string, err error) {
	var b strings.Builder
	var open []string
	for source != "" {
		switch source[0] {
		case '<':
			m := tagRule.FindStringSubmatch(source)
			if m == nil {
				return "", fmt.Errorf("unsupported start tag at %.20q", source)
			}
			if open, err = nest(open, m); err != nil {
				return "", err
			}
			source = source[len(m[0]):]
		case '&':
			m := entityRule.FindString(source)
			if m == "" {
				return "", fmt.Errorf("unknown entity at %.20q", source)
			}
			b.WriteString(html.UnescapeString(m))
			source = source[len(m):]
		default:
			n := strings.IndexAny(source, "<&")
			if n < 0 {
				n = len(source)
			}
			b.WriteString(source[:n])
			source = source[n:]
		}
	}

	if len(open) > 0 {
		return "", fmt.Errorf("can't find end tag corresponding to start tag %q", open[len(open)-1])
	}

	return b.String(), nil
}

func nest(open, m []string) ([]string, error) {
	name, attr := m[2], strings.TrimSpace(m[3])
	want, known := mayHold[name]
	switch {
	case !known:
		return nil, fmt.Errorf("unsupported start tag %q", name)
	case m[1] == "/":
		if len(open) == 0 || open[len(open)-1] != name {
			return nil, fmt.Errorf("unexpected end tag %q inside %q", name, open)
		}
		return open[:len(open)-1], nil
	case attr != "" && !strings.HasPrefix(attr, want+"="):
		return nil, fmt.Errorf("tag %q with attribute %s", name, attr)
	case slices.Contains(open, "code"), slices.Contains(open, "pre") && name != "code":
		return nil, fmt.Errorf("tag %q inside code", name)
	case name == "blockquote" && slices.Contains(open, "blockquote"), name == "pre" && len(open) > 0:
		return nil, fmt.Errorf("tag %q inside %q", name, open)
	}

	return append(slices.Clone(open), name), nil
}
