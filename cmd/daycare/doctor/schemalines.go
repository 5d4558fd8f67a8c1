package doctor

import (
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"

	"daycare/engine/disk"
	"daycare/engine/form/schema"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/record"
)

// A variant is one kind of line in a file of several kinds.
type variant struct {
	kind string
	of   reflect.Type
	need []string // beside type
}

// line is what every line has. A line written by a hand needs none but its type.
type line struct {
	Type string     `json:"type"`
	Seq  int64      `json:"seq" min:"1"`
	At   disk.Stamp `json:"at"`
	CRC  string     `json:"crc" jsonschema:"CRC-32C of the preceding bytes; missing or wrong: edited by hand"`
}

// schema is that of a line of this kind: its own members beside those that every line has.
func (v variant) schema() *jsonschema.Schema {
	s := schema.For(v.of, true)
	kind := any(v.kind)
	s.Title, s.Required = v.kind, append([]string{"type"}, v.need...)
	for key, p := range schema.For(reflect.TypeFor[line](), true).Properties {
		s.Properties[key] = p
	}

	s.Properties["type"] = &jsonschema.Schema{Const: &kind}
	s.PropertyOrder = nil

	return s
}

// historyLines are the kinds of history.jsonl, with what a line is nothing without.
func historyLines() (all []variant) {
	need := map[record.Type][]string{
		record.TypeStart: {"session"}, record.TypeReset: {"session"}, record.TypeMark: {"name"}, record.TypeRewind: {"to"},
		record.TypePermission: {"event", "tag"}, record.TypeTurnBegin: {"turn"}, record.TypeUser: {"text"}, record.TypeAssistant: {"text"},
		record.TypeToolStart: {"toolCallId"}, record.TypeToolResult: {"toolCallId", "output"}, record.TypeDelivery: {"out"},
		record.TypeTurnEnd: {"turn"}, record.TypeSummary: {"text"}, record.TypeNote: {"text"},
	}
	for _, r := range record.Blanks() {
		all = append(all, variant{string(r.Type()), reflect.TypeOf(r).Elem(), need[r.Type()]})
	}

	return all
}

// inboxLines are the kinds of inbox.jsonl: items, and their outcomes.
func inboxLines() []variant {
	type (
		done struct {
			IDs  []string `json:"ids"`
			Open int      `json:"open"`
		}
		keys struct {
			Keys []string `json:"keys"`
		}
		marked struct {
			ID string `json:"id"`
		}
	)
	all := []variant{
		{"done", reflect.TypeFor[done](), []string{"ids"}}, {"keys", reflect.TypeFor[keys](), []string{"keys"}},
		{"dropped", reflect.TypeFor[marked](), []string{"id"}}, {"front", reflect.TypeFor[marked](), []string{"id"}},
	}
	for _, kind := range []message.Kind{message.Text, message.System, message.Reset, message.Compact,
		message.Permission, message.Rewind, message.Mark} {
		need := []string{"id"}
		if kind == message.Permission {
			need = append(need, "decision") // a right that is given by hand has no token
		}
		all = append(all, variant{string(kind), reflect.TypeFor[inbox.Item](), need})
	}

	return all
}
