package control

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/event"
	"daycare/engine/fault"
)

type menu struct{}

func (menu) Models(context.Context) ([]ModelInfo, error) {
	price := 3.0
	return []ModelInfo{{Choice: "main", Provider: "main", Model: "claude", Window: 200_000, Input: &price, Default: true}}, nil
}

func (menu) Providers(context.Context) ([]event.Service, error) {
	return []event.Service{{ID: "main", Type: "anthropic", State: "running", Key: true}}, nil
}

func (menu) Skills(context.Context) ([]SkillInfo, error) { return nil, nil }

func (menu) Commands(context.Context) ([]CommandInfo, error) {
	return []CommandInfo{{Name: "review", Arguments: "FILE", File: "/w/.daycare/commands/review.md"}}, nil
}

func (menu) Expand(_ context.Context, name, arguments string) (string, error) {
	if name != "git:fix" {
		return "", fault.NoCommand
	}
	return "Fix " + arguments, nil
}

func TestOffers(t *testing.T) {
	b := (&fake{}).backend()
	b.Catalog = menu{}
	h := Handler(b, Options{})
	for path, want := range map[string]string{
		"/v1/models":    `{"models":[{"choice":"main","provider":"main","model":"claude","window":200000,"input":3,"default":true}]}`,
		"/v1/skills":    `{"skills":[]}`, // a list, not null
		"/v1/providers": `{"providers":[{"id":"main","type":"anthropic","state":"running","key":true}]}`,
		"/v1/commands":  `{"commands":[{"name":"review","arguments":"FILE","file":"/w/.daycare/commands/review.md"}]}`,
	} {
		if status, _, body := raw(t, h, "GET", path, ""); status != 200 || body != want+"\n" {
			t.Errorf("%s: %d %s\nwant %s", path, status, body, want)
		}
	}

	c := NewClient(Local(h))
	got, err := c.Models(t.Context())
	want, _ := menu{}.Models(t.Context())
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := c.Skills(t.Context()); err != nil {
		t.Error(err)
	}
	if list, err := c.Commands(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("commands: %v, %v", list, err)
	}
	if text, err := c.Expand(t.Context(), "git:fix", "it & that"); err != nil || text != "Fix it & that" {
		t.Errorf("a command expands to %q, %v", text, err)
	}
	if _, err := c.Expand(t.Context(), "nothing", ""); !errors.Is(err, fault.NoCommand) {
		t.Errorf("an unknown command: %v", err)
	}

	without := NewClient(Local(Handler((&fake{}).backend(), Options{})))
	if _, err := without.Models(t.Context()); err == nil {
		t.Error("a daemon with nothing to choose from has a list of models")
	}
}
