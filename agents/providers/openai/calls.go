package openai

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"daycare/agents/providers"
)

// calls puts the tool calls of an answer together from their deltas. Servers
// differ in nearly everything: calls in pieces or whole; index missing, or 0 for
// all of them; no id, or a late one; the name once, in pieces, or in every piece;
// arguments as text or as an object.
type calls struct {
	list    []*call
	byIndex map[int64]int // the newest call of an index -> its place in list
}

type call struct {
	remote    string // the id that the server gave, if any
	id        string // as reported: unique in the answer
	name      string
	arguments strings.Builder
	started   bool // ToolUseStart was sent

	// How far arguments has come, so that it is not read from its beginning with every piece.
	open    int  // brackets
	text    bool // within a string
	escaped bool // behind a backslash there
	whole   bool // it began with a bracket that was closed
}

// write adds a piece of the arguments.
func (c *call) write(piece string) {
	for _, b := range []byte(piece) {
		switch {
		case c.escaped:
			c.escaped = false
		case c.text && b == '\\':
			c.escaped = true
		case b == '"':
			c.text = !c.text
		case c.text:
		case b == '{' || b == '[':
			c.open++
		case b == '}' || b == ']':
			c.open--
			c.whole = c.whole || c.open == 0
		}
	}
	c.arguments.WriteString(piece)
}

// maxName bounds the name of a tool that comes in pieces, in bytes: no tool has a longer one.
const maxName = 1000

// add takes one element of tool_calls and returns the place of its call.
func (c *calls) add(v gjson.Result, emit func(providers.Event)) int {
	id, name := v.Get("id").String(), v.Get("function.name").String()
	arguments := v.Get("function.arguments").String() // of an object: its JSON

	place := c.find(v.Get("index"), id, name, arguments)
	one := c.list[place]
	if !one.started {
		if one.remote == "" {
			one.remote = id
		}
		switch {
		case strings.HasPrefix(name, one.name): // the first piece, or all of it again
			one.name = name
		case len(one.name) < maxName:
			one.name += name
		}
	}

	one.write(arguments)
	switch {
	case one.started && arguments != "":
		emit(providers.ToolUseDelta{ID: one.id, Arguments: arguments})
	case !one.started && one.name != "" && one.arguments.Len() > 0:
		c.start(place, emit)
	}

	return place
}

// find returns the place of the call that a piece belongs to, a new one if none.
func (c *calls) find(index gjson.Result, id, name, arguments string) int {
	if index.Type != gjson.Number {
		if id != "" {
			for i, one := range c.list {
				if one.remote == id {
					return i
				}
			}
		} else if name == "" && len(c.list) > 0 {
			return len(c.list) - 1
		}
		return c.grow(int64(len(c.list)))
	}

	place, ok := c.byIndex[index.Int()]
	if !ok {
		return c.grow(index.Int())
	}

	// A server that gives every call the index 0 betrays itself by another id, or
	// by a second whole call.
	one := c.list[place]
	other := name != "" && id != "" && one.remote != "" && id != one.remote
	whole := name != "" && arguments != "" && one.whole
	if other || whole {
		return c.grow(index.Int())
	}

	return place
}

func (c *calls) grow(index int64) int {
	if c.byIndex == nil {
		c.byIndex = map[int64]int{}
	}
	c.byIndex[index] = len(c.list)
	c.list = append(c.list, &call{})

	return len(c.list) - 1
}

// start reports a call. From here on its id is fixed.
func (c *calls) start(place int, emit func(providers.Event)) {
	one := c.list[place]
	one.id = cmp.Or(one.remote, "call_"+strconv.Itoa(place))
	for i, other := range c.list {
		if i != place && other.started && other.id == one.id {
			one.id += "_" + strconv.Itoa(place)
		}
	}

	one.started = true
	emit(providers.ToolUseStart{ID: one.id, Name: one.name})
	if one.arguments.Len() > 0 {
		emit(providers.ToolUseDelta{ID: one.id, Arguments: one.arguments.String()})
	}
}

// stop ends all calls; one without name and arguments was never one.
func (c *calls) stop(emit func(providers.Event)) {
	kept := c.list[:0]
	for _, one := range c.list {
		if one.started || one.name != "" || one.arguments.Len() > 0 {
			kept = append(kept, one)
		}
	}

	c.list = kept
	for i, one := range c.list {
		if !one.started {
			c.start(i, emit)
		}
		arguments := one.arguments.String()
		if strings.TrimSpace(arguments) == "" {
			arguments = "{}"
		}
		emit(providers.ToolUseStop{ID: one.id, Arguments: arguments})
	}
}
