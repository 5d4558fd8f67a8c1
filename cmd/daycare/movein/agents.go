package movein

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path"
	"time"

	"daycare/cmd/daycare/term"
	"daycare/engine"
	"daycare/engine/address"
	"daycare/engine/disk"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/tarball"
)

// An agent is made of an archive, as an export writes it: the import of the engine reads it, so
// that it is checked and durable like any other.
type agent struct {
	id         string
	descriptor address.Descriptor
	other      string // what it is called if it has no name and its chat has an agent here
	archive    func(w *here, d address.Descriptor, to io.Writer) error
}

func (a agent) look(w *here) spot {
	_, known := w.agents.Get(a.id)
	return spot{to: path.Join("agents", a.id), there: known || w.planned[path.Join("agents", a.id)] != nil}
}

func (a agent) place(w *here, _ spot) error {
	d := a.descriptor
	if _, taken := w.agents.Lookup(d); taken { // the chat has an agent here: this one is reached from the terminal
		d = terminal(a.id, cmp.Or(d.Name, a.other))
	}
	from, to := io.Pipe()
	go func() { to.CloseWithError(a.archive(w, d, to)) }()
	err := w.bring(from)

	return errors.Join(err, from.Close())
}

// terminal is the descriptor of an agent that is reached by its name alone.
func terminal(id, name string) address.Descriptor {
	return address.Descriptor{Type: address.User, Connector: "terminal", UserID: engine.Terminal().UserID,
		ChannelID: "import-" + id[:8], Name: name}
}

// A talk is a conversation of another program.
type talk struct {
	id      string // of the agent that continues with it
	name    string // what the agent is called
	summary string // of what was said before
	said    []record.Said
	left    int  // how many tool calls and pictures are left out
	torn    bool // the last line was incomplete
}

// maxTalks bounds how many conversations are taken of a home.
const maxTalks = 200

// talk takes a conversation as an agent that continues with it.
func (h *home) talk(from string, t talk) {
	if len(t.said) == 0 && t.summary == "" {
		h.skip("conversation", from, "the conversation is empty")
		return
	}
	note := fmt.Sprintf("agent %s, %s", t.name, term.Plural(len(t.said), "message", "messages"))
	if t.left > 0 {
		note += "; without " + term.Plural(t.left, "tool call or picture", "tool calls and pictures")
	}
	if t.torn {
		note += "; without its last line, which is incomplete"
	}

	h.add(item{what: "conversation", from: from, note: note,
		put: agent{id: t.id, descriptor: terminal(t.id, t.name), archive: t.archive}})
}

// archive writes the agent as an export would. It may work in the workspace, and nothing else.
func (t talk) archive(w *here, d address.Descriptor, to io.Writer) error {
	cut := record.Retell(idOf("session", t.id), t.summary, t.said, w.now)
	rights := permission.Default(w.at.Dir)
	state, err := record.EncodeState(w.at, record.State{Permissions: rights, Announced: &rights, Session: cut.Session,
		Seq: cut.Last, CreatedAt: disk.StampOf(w.now), UpdatedAt: disk.StampOf(w.now)})
	if err != nil {
		return err
	}

	descriptor, err := address.Encode(d)
	if err != nil {
		return err
	}
	tar := tarball.NewWriter(to)
	for _, f := range []struct {
		name    string
		content []byte
	}{{address.File, descriptor}, {"state.json", state}, {"history.jsonl", cut.Content}} {
		e := tarball.Entry{Name: path.Join(t.id, f.name), Mode: 0o600, Size: int64(len(f.content)), ModTime: w.now}
		if err := tar.Add(e, bytes.NewReader(f.content)); err != nil {
			return err
		}
	}

	return tar.Close()
}

// say adds what someone said. What the agent says in a row is one message.
func (t *talk) say(at time.Time, byAgent bool, text string) {
	last := len(t.said) - 1
	if byAgent && last >= 0 && t.said[last].Agent {
		t.said[last].Text += "\n\n" + text
		return
	}
	t.said = append(t.said, record.Said{At: at, Agent: byAgent, Text: text})
}
