package agents

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"daycare/agents/prompt"
	"daycare/agents/providers"
	"daycare/engine/event"
	"daycare/engine/record"
	"daycare/tools"
)

// requests are made of history. A session has one system prompt.
type requests struct {
	journal    *journal
	briefing   Briefing
	builder    *prompt.Builder
	definition prompt.Definition // what system was rendered from
	system     string
	session    string // the session that system was rendered for; "": it is to be rendered anew
}

// build makes the request of the next model call from history as it is now: what a
// person edited since the last call counts. That they took out what was to be answered is a callError.
func (r *requests) build(t *turn) (*providers.Request, error) {
	if err := r.journal.refreshSince(t.id, r.journal.hooked); err != nil {
		return nil, err
	}
	context, err := r.journal.history.Context()
	if err != nil {
		return nil, fmt.Errorf("read context: %w", err)
	}
	if context.Session != r.session {
		r.introduce(&t.self, context.Session)
	}

	o := options(t.model())
	o.Agent, o.Foreground = r.journal.id, t.foreground()
	req, err := r.builder.Build(context, r.system, offer(t.tools), o)
	if errors.Is(err, prompt.ErrNothingNew) {
		return nil, callError{err}
	}
	if err != nil {
		return nil, fmt.Errorf("build request: %w", err)
	}

	return req, nil
}

// options are what the choice of a model says about its requests.
func options(choice record.Model) prompt.Options {
	return prompt.Options{Model: choice.Model, MaxTokens: choice.MaxTokens, Temperature: choice.Temperature, Thinking: choice.Thinking}
}

// RequestOf is the request that an agent makes of a context: with this system prompt, these tools
// and this model. Nothing of the agent has to run.
func RequestOf(b *prompt.Builder, c *record.Context, system string, set *tools.Set, choice record.Model) (*providers.Request, error) {
	return b.Build(c, system, offer(set), options(choice))
}

// introduce renders the system prompt of a session. It is kept for the whole
// session, because a changed prompt is a new prefix for every cache.
func (r *requests) introduce(s *self, session string) {
	r.definition = r.briefing.Definition(s.meta, s.state)
	r.system, r.session = r.journal.redact.Text(prompt.System(r.definition)), session
	if err := r.journal.volume.WriteDraft("draft", r.journal.path("SYSTEM.md"), []byte(r.system)); err != nil {
		r.journal.log.Warn("readable copy of the system prompt not written", "err", err)
	}
}

// offer is the list of tools as it is sent to the model.
func offer(set *tools.Set) []providers.Tool {
	if set == nil {
		return nil
	}
	offer := make([]providers.Tool, 0, set.Len())
	for s := range set.Told {
		offer = append(offer, providers.Tool{Name: s.Name, Description: s.Description, Schema: s.Schema})
	}

	return offer
}

// lookAtPrompt has the system prompt rendered anew if what it is made of was edited.
// Inside a session it stays as it is otherwise: a changed prompt is a new prefix for
// every cache.
func (r *requests) lookAtPrompt(s *self) error {
	if r.session == "" {
		return nil // rendered at the next call anyway
	}
	was, now := r.definition, r.briefing.Definition(s.meta, s.state)
	if was.Equal(now) || prompt.System(was) == prompt.System(now) {
		return nil
	}

	edited := append(promptFiles(was.Files, now.Files), skillFiles(was.Skills, now.Skills)...)
	r.session = "" // the next call renders it
	for _, name := range edited {
		r.journal.emit(event.FileEdited, "", event.File{File: name, Text: "changed; takes effect with this turn"})
	}

	if len(edited) == 0 {
		edited = []string{"descriptor.json"}
	}

	text := strings.Join(edited, ", ") + " edited by hand: the system prompt changes from here on"
	_, err := r.journal.append(&record.Note{Text: text})
	return err
}

// skillFiles are those of skills that came, went, or say otherwise when to use them.
func skillFiles(was, now []prompt.Skill) (names []string) {
	for i, list := range [][]prompt.Skill{was, now} {
		for _, s := range list {
			name := s.Name + "/SKILL.md"
			if !slices.Contains([][]prompt.Skill{now, was}[i], s) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}

	return names
}

func promptFiles(a, b prompt.Files) (names []string) {
	for _, f := range []struct{ name, a, b string }{
		{"SOUL.md", a.Soul, b.Soul}, {"USER.md", a.User, b.User},
		{".daycare/AGENTS.md", a.Rules, b.Rules}, {"AGENTS.md", a.Agents, b.Agents},
		{"CLAUDE.md", a.Claude, b.Claude},
	} {
		if f.a != f.b {
			names = append(names, f.name)
		}
	}

	return names
}
