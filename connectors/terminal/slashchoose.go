package terminal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"daycare/connectors/terminal/markdown"
	"daycare/connectors/terminal/transcript"
	"daycare/engine/control"
	"daycare/engine/event"
)

// Commands that offer what there is when they are given no name.

func modelCommand(m *Model, name string) tea.Cmd {
	a, ok := m.target("")
	if !ok {
		return nil
	}
	if name != "" {
		return m.call.switchModel(a.ID, name)
	}
	return m.call(func(ctx context.Context, api *control.Client) tea.Msg {
		list, err := api.Models(ctx)
		if err != nil {
			return failed{"models", err}
		}
		c := &chooser{title: "The model of " + a.Handle + " " + title(a) + ", from its next turn on", verb: "switches to it"}
		for _, x := range list {
			c.options = append(c.options, modelOption(a, x))
		}
		c.options = append(c.options, option{sign: " ", name: unchosen, about: "follow the settings, also when they change",
			take: func(m *Model) tea.Cmd { return m.call.switchModel(a.ID, unchosen) }})
		return chooserRead{c}
	})
}

// unchosen is the choice that leaves the model to the settings.
const unchosen = "default"

func modelOption(a *agent, x control.ModelInfo) option {
	sign := " "
	if a.Model == x.Model {
		sign = "●"
	}
	var facts []string
	if x.Provider != x.Choice {
		facts = append(facts, "by "+x.Provider)
	} else {
		facts = append(facts, "as "+x.Provider+" is set up")
	}
	if x.Window > 0 {
		facts = append(facts, strings.TrimSuffix(thousands(int64(x.Window)), " tokens")+" of context")
	}
	if x.Input != nil && x.Output != nil {
		facts = append(facts, fmt.Sprintf("$%g in, $%g out", *x.Input, *x.Output))
	}
	if x.Images {
		facts = append(facts, "sees pictures")
	}
	return option{sign: sign, name: cmp.Or(x.Model, x.Choice), about: strings.Join(facts, " · "),
		take: func(m *Model) tea.Cmd { return m.call.switchModel(a.ID, x.Choice) }}
}

func (call caller) switchModel(agent, name string) tea.Cmd {
	return call(func(ctx context.Context, api *control.Client) tea.Msg {
		c, err := api.Folders().Switch(ctx, agent, name)
		if err != nil {
			return failed{"model", err}
		}
		return did{"from the next turn on it uses " + cmp.Or(c.Model, c.Provider)}
	})
}

// skillsCommand shows what agents know how to do, and whom they can ask.
func skillsCommand(m *Model, _ string) tea.Cmd {
	return m.call(func(ctx context.Context, api *control.Client) tea.Msg {
		skills, err := api.Skills(ctx)
		if err != nil {
			return failed{"skills", err}
		}
		kinds, err := api.SubAgents(ctx)
		if err != nil {
			return failed{"sub-agents", err}
		}
		c := &chooser{title: "Skills and sub-agents", verb: "writes its name"}
		for _, s := range skills {
			c.options = append(c.options, skillOption(s))
		}
		for _, k := range kinds {
			c.options = append(c.options, kindOption(k))
		}
		return chooserRead{c}
	})
}

func skillOption(s control.SkillInfo) option {
	more := s.Description
	if s.Tools != "" {
		more += "\nTools: " + s.Tools
	}
	return option{group: "Skills", sign: cmp.Or(safeIcon(s.Icon), "·"), name: s.Name, about: markdown.OneLine(s.Description, 200),
		more: more + "\n" + s.File, take: func(m *Model) tea.Cmd { return m.begin("Use the skill " + s.Name + ": ") }}
}

func kindOption(k control.SubAgentInfo) option {
	more := fmt.Sprintf("%s\nTools: %s. At most %s.", k.Description, cmp.Or(strings.Join(k.Tools, ", "), "none"),
		count(k.MaxIterations, "round"))
	if k.Model != "" {
		more += " Model: " + k.Model + "."
	}
	return option{group: "SubAgents", sign: cmp.Or(safeIcon(k.Icon), transcript.SubAgentIcon), name: k.Name,
		about: markdown.OneLine(k.Description, 200), more: more + "\n" + cmp.Or(k.File, "built in"),
		take: func(m *Model) tea.Cmd { return m.begin("Ask " + k.Name + ": ") }}
}

// begin puts the beginning of a message before what is typed already.
func (m *Model) begin(text string) tea.Cmd {
	var cmd tea.Cmd
	if m.page != talkPage {
		cmd = m.show(m.talk.agents.shown)
	}
	m.talk.input.restore(text + m.talk.input.value())
	return cmd
}

// rewindCommand: what follows leaves the model's context. What was done stays done; files that its tools wrote can be
// taken back.
func rewindCommand(m *Model, to string) tea.Cmd {
	a, ok := m.target("")
	if !ok {
		return nil
	}
	if to != "" {
		return m.call.rewind(a.ID, to, "everything after "+to)
	}
	c := &chooser{title: "Go back: everything after it is forgotten", verb: "goes back"}
	for _, p := range m.talk.agents.current().text.Places() {
		c.options = append(c.options, placeOption(m, a.ID, p))
	}
	if len(c.options) == 0 {
		m.screen.say("there is nothing to go back to in this conversation")
		return nil
	}
	m.over = c
	return nil
}

func placeOption(m *Model, agent string, p transcript.Place) option {
	o := option{sign: "›", name: markdown.OneLine(p.Text, 120), about: m.screen.age(&p.At)}
	what := "what followed"
	if p.Mark {
		o.sign, o.name = "◆", "checkpoint "+p.Text
	}
	o.take = func(m *Model) tea.Cmd {
		if !p.Mark && m.talk.input.empty() {
			m.talk.input.set(p.Text) // to be said in another way
		}
		return m.call.rewind(agent, strconv.FormatInt(p.Seq, 10), what)
	}

	return o
}

// rewind goes back. If the agent's tools wrote files since, it first offers to take them back, too.
func (call caller) rewind(agent, to, what string) tea.Cmd {
	return call(func(ctx context.Context, api *control.Client) tea.Msg {
		files, err := api.Folders().Undoable(ctx, agent, &to)
		files = slices.DeleteFunc(files, func(f event.Rewound) bool { return f.Standing == asBefore })
		switch {
		case err != nil:
			return failed{"rewind", err}
		case len(files) > 0:
			return chooserRead{undoChooser(agent, to, what, files)}
		}
		return rewound(ctx, api, agent, to, what)
	})
}

func rewound(ctx context.Context, api *control.Client, agent, to, what string) tea.Msg {
	if _, err := api.Folders().Rewind(ctx, agent, to); err != nil {
		return failed{"rewind", err}
	}
	return did{"it forgets " + what}
}

// standings say how a file stands that a rewound turn wrote.
var standings = map[string]string{
	"ready": "can be taken back", "between": "someone else changed it in between: it stays", "again": "the agent wrote it again: it stays",
	"since": "someone else changed it since: it stays", "gone": "its earlier content was not kept: it stays",
}

// asBefore is the standing of a file that needs nothing.
const asBefore = "before"

// undoChooser asks what is to become of files that the agent wrote in the turns that are going to be rewound.
func undoChooser(agent, to, what string, files []event.Rewound) *chooser {
	var list []string
	ready := 0
	for _, f := range files {
		list = append(list, f.Path+": "+standings[f.Standing])
		if f.Standing == "ready" {
			ready++
		}
	}
	more := strings.Join(list, "\n")
	c := &chooser{title: "Its tools wrote " + count(len(files), "file") + " since", verb: "goes back"}
	c.options = append(c.options, option{sign: "›", name: "Leave the files", about: "and go back in the conversation only", more: more,
		take: func(m *Model) tea.Cmd {
			return m.call(func(ctx context.Context, api *control.Client) tea.Msg { return rewound(ctx, api, agent, to, what) })
		}})
	if ready > 0 {
		c.options = append(c.options, option{sign: "›", name: "Take back " + count(ready, "file"),
			about: "as before these turns, and go back", more: more,
			take: func(m *Model) tea.Cmd { return takeBack(m.call, agent, to, what) }})
	}

	return c
}

// takeBack goes back, and takes back the files that nobody else changed.
func takeBack(call caller, agent, to, what string) tea.Cmd {
	return call(func(ctx context.Context, api *control.Client) tea.Msg {
		results, err := api.Folders().RewindFiles(ctx, agent, to)
		if errors.Is(err, context.DeadlineExceeded) {
			return did{"it forgets " + what + " when its turn has ended; then take the files back with: daycare agents undo"}
		}
		if err != nil {
			return failed{"rewind", err}
		}
		left := slices.DeleteFunc(slices.Clone(results), func(r event.TakenBack) bool { return r.Outcome != "refused" })
		text := "it forgets " + what + "; " + count(len(results)-len(left), "file") + " taken back"
		for _, r := range left {
			text += ", " + r.Path + " left: " + r.Why
		}
		return did{text}
	})
}
