package terminal

import (
	"context"
	"errors"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"

	"daycare/engine/event"
)

// newcomer is a daemon that has no model, in front of a shell that has a key, and what
// the wizard asks to be written down.
func newcomer(refuse int) (d *daemon, written *[]Answers) {
	d, written = newDaemon(), &[]Answers{}
	d.models = []event.Service{{ID: "scripted", Type: "scripted"}}
	d.setup = &Setup{
		Missed: func(context.Context, event.Status) (string, string) { return "", "" },
		Offers: func(context.Context) ([]Offer, int, error) {
			return []Offer{
				{Name: "anthropic", Label: "Anthropic", AskKey: true, Model: "claude-sonnet-5-5"},
				{Name: "openai", Label: "OpenAI", Note: "OPENAI_API_KEY is set", AskKey: true, KeyEnv: "OPENAI_API_KEY",
					Model: "gpt-6.1-sol"},
				{Name: "server", Label: "another server", Server: true, AskAddress: true, AskKey: true,
					Address: "http://127.0.0.1:8080/v1"},
				{Name: "offline", Label: "none for now: the offline model"},
			}, 1, nil
		},
		Models: func(context.Context, Answers) ([]string, error) { return []string{"qwen3", "glm-5"}, nil },
		Apply: func(_ context.Context, a Answers) (string, error) {
			if refuse--; refuse >= 0 && !a.Unchecked {
				return "", errors.New("anthropic does not answer: HTTP 401: invalid x-api-key\nset its key with: daycare auth set " +
					"anthropic")
			}
			*written = append(*written, a)
			return "ready", nil
		},
	}
	return d, written
}

// A newcomer without a model is asked where answers come from, and talks to one then. What
// is pasted as the key is never on the screen.
func TestNewcomerSetsUpAModel(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0, written := newcomer(1)
		drive(t, d0, 80, 24, func(d *driver) {
			d.golden("setup-1-service")
			d.press("up", "enter")
			d.send(tea.PasteMsg{Content: " sk-ant-secret\n"})
			d.golden("setup-2-key")
			d.hides("secret")
			d.press("enter", "enter")
			d.golden("setup-3-refused")
			d.press("enter", "1")
			d.send(tea.PasteMsg{Content: "sk-ant-good"})
			d.press("enter", "enter")
			d.shows(`the model is set up; it answered "ready"`, "Write to your agent below")
			d.hides("Which model service do you want to use?")
		})
		want := []Answers{{Name: "anthropic", Key: "sk-ant-good", Model: "claude-sonnet-5-5"}}
		if diff := cmp.Diff(want, *written); diff != "" {
			t.Errorf("written (-want +got):\n%s", diff)
		}
	})
}

// A server is asked for its address and its models; a wrong address is said at once.
func TestSetupOfAServer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0, written := newcomer(0)
		drive(t, d0, 80, 24, func(d *driver) {
			d.press("3")
			d.write("127.0.0.1")
			d.press("enter")
			d.shows("An address begins with http://")
			d.press("ctrl+u", "enter", "enter")
			d.shows("It has qwen3, glm-5")
			d.press("enter")
		})
		want := []Answers{{Name: "server", Address: "http://127.0.0.1:8080/v1", Model: "qwen3"}}
		if diff := cmp.Diff(want, *written); diff != "" {
			t.Errorf("written (-want +got):\n%s", diff)
		}
	})
}

// Esc leaves the wizard for later, Enter keeps a key of the shell, w writes what did not work.
func TestSetupLater(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0, written := newcomer(1)
		drive(t, d0, 80, 24, func(d *driver) {
			d.press("esc")
			d.shows("later: /setup", "No model is set up")
			d.write("/setup")
			d.press("enter", "enter")
			d.shows("OPENAI_API_KEY of this shell there")
			d.press("enter", "enter")
			d.shows("HTTP 401")
			d.press("w")
			d.hides("HTTP 401")
		})
		want := []Answers{{Name: "openai", Model: "gpt-6.1-sol", Unchecked: true}}
		if diff := cmp.Diff(want, *written); diff != "" {
			t.Errorf("written (-want +got):\n%s", diff)
		}
	})
}

// Whoever writes to the agent while services are offered writes to the agent.
func TestTypingLeavesTheSetup(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0, written := newcomer(1)
		drive(t, d0, 80, 24, func(d *driver) {
			d.shows("Which model service do you want to use?")
			d.press("up")
			d.hides("…")
			d.write("just 1 question")
			d.hides("Which model service do you want to use?")
			d.shows("› just 1 question", "later: /setup")
			d.press("enter")
			d.hides("› just 1 question")
		})
		if len(*written) > 0 {
			t.Errorf("written: %+v", *written)
		}
	})
}

// A daemon that was started before the key was set goes on without it: the UI says so.
func TestUINamesTheKeyThatTheDaemonLacks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0 := newDaemon()
		d0.setup = &Setup{Missed: func(_ context.Context, s event.Status) (string, string) {
			if !s.Running || s.Providers[0].ID != "claude" {
				t.Errorf("compared with %+v", s)
			}
			return "the daemon (pid 7) has no key for claude", "Start it again: daycare restart\nOr keep it: daycare auth set claude"
		}}
		drive(t, d0, 100, 24, func(d *driver) {
			d.shows("the daemon (pid 7) has no key for claude; /status says more")
			d.shows("The daemon (pid 7) has no key for claude. Start it again: daycare restart. Or keep it: daycare", "auth set claude.")
			d.write("/status")
			d.press("enter")
			d.shows("Status", "1 agent, 0 awake, 0 queued items",
				"   The daemon (pid 7) has no key for claude. Start it again: daycare restart.")
			if strings.Contains(d.frame(), "Which model service do you want to use?") {
				t.Error("the wizard opens although a model is set up")
			}
		})
	})
}

// On a screen that is wide enough, what can be chosen is shown whole.
func TestChoicesAreWhole(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0, _ := newcomer(0)
		offers := d0.setup.Offers
		const label = "none for now: the offline model, which needs no key and has few abilities"
		d0.setup.Offers = func(ctx context.Context) ([]Offer, int, error) {
			list, at, err := offers(ctx)
			list[len(list)-1].Label = label
			return list, at, err
		}
		drive(t, d0, 120, 24, func(d *driver) { d.shows(label, "OPENAI_API_KEY is set") })
	})
}
