package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/address"
	"daycare/engine/fault"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/record"
)

// Why tells how a reply came about, from the files alone.
func Why(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "why ID", Short: "Show everything that led from a message to its reply",
		Long: "Trace a message (item), a reply (out), a turn, a tool call or an approval request by its id:\n" +
			"what came in, what the model was given, what it called, who approved it, what was answered\n" +
			"and delivered, and what it cost. Works from the files, without the daemon.",
		Example: "  item=$(daycare send 0/ hello) && daycare why $item",
		Args:    term.Words(0, "the ID of an item, a reply, a turn or a tool call"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := c.MadePlace()
			if err != nil {
				return err
			}
			w, err := storyOf(cmd.Context(), c, at.Data, args[0])
			if err != nil {
				return err
			}
			if c.JSON {
				return c.PrintJSON(w)
			}

			showStory(c, w)
			return nil
		},
	}
}

// A why is a story, together with what is not in history.
type why struct {
	ID      string         `json:"id"`
	Agent   string         `json:"agent"`
	Handle  string         `json:"handle"`
	Name    string         `json:"name"`
	Waiting bool           `json:"waiting,omitempty"` // accepted, but not yet in history
	Inbound []inbox.Item   `json:"inbound"`           // as they are in the inbox; empty if it was rotated since
	Turn    string         `json:"turn,omitempty"`
	Prompt  []promptPart   `json:"prompt,omitempty"`
	Records []record.Entry `json:"-"`
	Lines   []line         `json:"records"`
	modelUse
}

// modelUse is what the model calls of a story used.
type modelUse struct {
	Calls  int           `json:"calls"`
	Cost   float64       `json:"cost"` // US dollars
	Tokens record.Tokens `json:"tokens"`
}

// A line is a record as JSON has it.
type line struct {
	Seq    int64         `json:"seq"`
	At     string        `json:"at"`
	Type   record.Type   `json:"type"`
	Fields record.Record `json:"fields"`
}

// A promptPart is the size of one part of the context when the turn began.
type promptPart struct {
	Part   string `json:"part"`
	Count  int    `json:"count,omitempty"` // records
	Tokens int    `json:"tokens"`          // estimated: characters / 4
}

// Story is what daycare why prints with --json.
func Story(ctx context.Context, home, id string) (any, error) { return findStory(ctx, home, id) }

// storyOf finds a story, also one of an agent that is on another machine of a cluster.
func storyOf(ctx context.Context, c *term.App, home, id string) (why, error) {
	w, err := findStory(ctx, home, id)
	if err != nil && !errors.Is(err, fault.NoTrace) {
		return w, err
	}
	client, cerr := c.Reader(ctx)
	if cerr != nil {
		return w, cerr
	}
	agent := w.Agent
	if err != nil {
		var there struct{ Agent string }
		data, terr := client.Trace(ctx, id)
		if terr != nil || json.Unmarshal(data, &there) != nil {
			return w, err
		}
		agent = there.Agent
	}
	a, aerr := client.Agent(ctx, agent)
	if aerr != nil { // it is here alone
		return w, err
	}
	f, ferr := filesOf(ctx, c, client, a)
	if ferr != nil {
		return w, ferr
	}
	defer f.close()
	if f.machine == "" && err == nil {
		return w, nil
	}
	if w, err = findStory(ctx, f.home, id); err == nil {
		w.Handle, w.Name = a.Handle, a.Name
	}

	return w, err
}

// findStory looks through all agents for who knows the id.
func findStory(ctx context.Context, home, id string) (why, error) {
	index, _, err := address.Look(home, slog.New(slog.DiscardHandler))
	if err != nil {
		return why{}, fmt.Errorf("read agents: %w", err)
	}

	for _, meta := range index.All() {
		if ctx.Err() != nil {
			return why{}, ctx.Err()
		}
		dir := filepath.Join(home, "agents", meta.ID)
		s, ok, err := record.TraceOf(dir, id)
		if err != nil {
			return why{}, fmt.Errorf("read %s: %w", meta.Handle, err)
		}

		items, err := inbox.Accepted(dir, taken(id, s))
		if err != nil {
			return why{}, fmt.Errorf("read %s: %w", meta.Handle, err)
		}
		if ok || len(items) > 0 {
			return tell(meta, dir, id, s, items), nil
		}
	}

	return why{}, fault.NoTrace.Says("%s is in no history and no inbox", id)
}

// tell puts a story together.
func tell(meta address.Meta, dir, id string, s record.Trace, items []inbox.Item) why {
	w := why{ID: id, Agent: meta.ID, Handle: meta.Handle, Name: meta.Name, Turn: s.Turn, Waiting: len(s.Entries) == 0,
		Inbound: append([]inbox.Item{}, items...), Lines: []line{}}
	for _, e := range s.Entries {
		switch r := e.Rec.(type) {
		case *record.Assistant:
			if r.Provider != "" {
				w.Calls++
			}
			w.spend(r.Tokens, r.Cost)
		case *record.Summary:
			w.Calls++
			w.spend(r.Tokens, r.Cost)
		}

		w.Records = append(w.Records, *e)
		w.Lines = append(w.Lines, line{e.Seq, e.At.Format("2006-01-02T15:04:05.000Z07:00"), e.Rec.Type(), e.Rec})
	}

	if s.Turn != "" {
		w.Prompt = whyPrompt(dir, s)
	}

	return w
}

// taken are the items of a story.
func taken(id string, s record.Trace) map[string]bool {
	ids := map[string]bool{id: true}
	for _, e := range s.Entries {
		if u, ok := e.Rec.(*record.User); ok {
			ids[u.Item] = true
		}
	}

	return ids
}

func (w *why) spend(t record.Tokens, cost float64) {
	w.Cost += cost
	w.Tokens.Input, w.Tokens.Output = w.Tokens.Input+t.Input, w.Tokens.Output+t.Output
	w.Tokens.CacheRead, w.Tokens.CacheWrite = w.Tokens.CacheRead+t.CacheRead, w.Tokens.CacheWrite+t.CacheWrite
	w.Tokens.Estimated = w.Tokens.Estimated || t.Estimated
}

// whyPrompt estimates what the first request of the turn was made of. The system
// prompt is the one that was rendered last, which an edit since may have changed.
func whyPrompt(dir string, s record.Trace) []promptPart {
	var parts []promptPart
	add := func(name string, count, chars int) {
		if chars > 0 {
			parts = append(parts, promptPart{name, count, (chars + 3) / 4})
		}
	}
	if system, err := os.ReadFile(filepath.Join(dir, "SYSTEM.md")); err == nil {
		add("system prompt, in its current version", 0, utf8.RuneCount(system))
	}
	if s.Summary != nil {
		add("summary of older messages", 1, utf8.RuneCountInString(s.Summary.Rec.(*record.Summary).Text))
	}

	var said, answered, results sum
	for _, e := range s.Before {
		switch r := e.Rec.(type) {
		case *record.User:
			said.add(r.Text)
		case *record.Assistant:
			answered.add(r.Text)
			for _, call := range r.ToolCalls {
				answered.chars += len(call.Arguments)
			}
		case *record.ToolResult:
			results.add(r.Output.Text)
		}
	}

	add("earlier messages", said.n, said.chars)
	add("earlier answers", answered.n, answered.chars)
	add("earlier tool results", results.n, results.chars)
	var now sum
	for _, e := range s.Entries {
		if u, ok := e.Rec.(*record.User); ok {
			now.add(u.Text)
			now.chars += utf8.RuneCountInString(u.Preface)
		}
	}

	add("messages of this turn", now.n, now.chars)
	return parts
}

type sum struct{ n, chars int }

func (s *sum) add(text string) { s.n, s.chars = s.n+1, s.chars+utf8.RuneCountInString(text) }

// from says where an item came from.
func from(it inbox.Item) string {
	switch {
	case it.Kind == message.System:
		return "agent or runtime " + it.Origin
	case it.Route != nil:
		return term.Join("/", it.Route.Connector, it.Route.ChannelID, it.Route.UserID)
	case it.Dedupe != "":
		return it.Dedupe
	}

	return "its own chat"
}
