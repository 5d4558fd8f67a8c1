package terminal

import (
	"context"
	"strings"

	tea "charm.land/bubbletea/v2"

	"daycare/connectors/terminal/markdown"
	"daycare/engine/control"
	"daycare/engine/event"
)

// A Setup is how a model is set up from inside the UI.
type Setup struct {
	// Missed says what a running daemon lacks that this shell has, and the remedy.
	Missed func(ctx context.Context, s event.Status) (what, do string)
	// Offers lists where answers may come from, and which of them Enter chooses.
	Offers func(ctx context.Context) (offers []Offer, usual int, err error)
	// Models lists the models that a server says it has.
	Models func(ctx context.Context, a Answers) ([]string, error)
	// Apply asks the model for a word and writes the answers into the settings. It returns
	// what the model said. With Unchecked it only writes.
	Apply func(ctx context.Context, a Answers) (said string, err error)
}

// An Offer is one place where answers may come from.
type Offer struct {
	Name, Label, Note string
	Server            bool   // it may have any models and may need no key
	Address           string // suggested; asked for if AskAddress is set
	AskAddress        bool
	KeyEnv            string // the variable of this shell that holds the key; "" if none does
	AskKey            bool
	Model             string // suggested; "" where no model is asked for
}

// Answers are what a user chose.
type Answers struct {
	Name, Address, Key, Model string
	Unchecked                 bool
}

// Messages of the wizard.
type (
	missedRead   struct{ what, do string }
	setupOffered struct {
		offers []Offer
		usual  int
		asked  bool // the user asked for it
	}
	modelsListed struct {
		names []string
		err   error
	}
	setupApplied struct {
		said string
		err  error
	}
)

// offerSetup opens the wizard by itself, once, for a newcomer whose workspace has no model.
func offerSetup(m *Model) tea.Cmd {
	if m.opts.Setup == nil || m.offered || m.returning || !m.conn.listed || !event.NoModel(m.world.status.Providers) {
		return nil
	}
	m.offered = true
	return m.background.offers(m.opts.Setup, false)
}

func setupCommand(m *Model, _ string) tea.Cmd {
	if m.opts.Setup == nil {
		m.screen.say("set a model up with: daycare init")
		return nil
	}

	return m.background.offers(m.opts.Setup, true)
}

func (run background) offers(s *Setup, asked bool) tea.Cmd {
	offers := s.Offers
	return run(func(ctx context.Context) tea.Msg {
		list, usual, err := offers(ctx)
		if err != nil {
			return failed{"setup", err}
		}
		return setupOffered{list, usual, asked}
	})
}

// readMissed compares what the daemon uses with what this shell has.
func readMissed(m *Model) tea.Cmd {
	if m.opts.Setup == nil {
		return nil
	}
	s, missed := m.world.status, m.opts.Setup.Missed
	return m.background(func(ctx context.Context) tea.Msg {
		what, do := missed(ctx, s)
		return missedRead{what, do}
	})
}

// sentences makes a sentence of each line.
func sentences(text string) string {
	var list []string
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" {
			list = append(list, strings.ToUpper(line[:1])+line[1:]+".")
		}
	}

	return strings.Join(list, " ")
}

func (msg missedRead) take(m *Model) tea.Cmd {
	m.world.missed = ""
	if msg.what != "" {
		m.world.missed = sentences(msg.what + "\n" + msg.do)
		m.screen.warn(msg.what + "; /status says more")
	}

	return nil
}

func (msg setupOffered) take(m *Model) tea.Cmd {
	if !msg.asked && (m.over != nil || !m.talk.input.empty()) {
		return nil // the user is busy; the page says that there is /setup
	}
	m.over = &wizard{setup: m.opts.Setup, offers: msg.offers, at: msg.usual}
	return nil
}

func (msg modelsListed) take(m *Model) tea.Cmd {
	if w, open := m.over.(*wizard); open {
		w.listed(msg)
	}
	return nil
}

// take closes the wizard and has the daemon use what was written, or says why nothing was.
func (msg setupApplied) take(m *Model) tea.Cmd {
	if msg.err != nil {
		if w, open := m.over.(*wizard); open {
			w.trouble, w.step = msg.err.Error(), stepRefused
		}
		return nil
	}

	m.over = nil
	done := "the model is set up"
	if msg.said != "" {
		done += `; it answered "` + markdown.OneLine(msg.said, 60) + `"`
	}
	return m.call.order("settings", done, func(ctx context.Context, api *control.Client) error {
		_, err := api.Reload(ctx)
		return err
	})
}
