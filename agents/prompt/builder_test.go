package prompt

import (
	"errors"
	"strings"
	"testing"

	"daycare/agents/providers"
	"daycare/engine/message"
	"daycare/engine/record"
)

var twoPixels = drawn(2, 1)

// sources has two small pictures, one that is missing, and one blob.
var sources = Sources{
	File: func(f message.File) ([]byte, error) {
		if strings.Contains(f.Path, "gone.") {
			return nil, errors.New("no such file")
		}
		switch f.MimeType {
		case "image/png", "image/webp":
			return twoPixels, nil
		case pdf:
			return []byte("%PDF-1.7 of " + f.Name), nil
		}

		return []byte("text of <" + f.Name + ">\n"), nil
	},
	Dir: "testdata/agent",
}

func build(t *testing.T, b *Builder, ctx *record.Context) *providers.Request {
	t.Helper()
	req, err := b.Build(ctx, "SYSTEM", nil, Options{Model: "m", MaxTokens: 100, Agent: "a1", Foreground: true})
	if err != nil {
		t.Fatalf("Build: %v", err)
	}
	return req
}

func TestRequests(t *testing.T) {
	for name, ctx := range map[string]*record.Context{
		"plain":       plainTalk(),
		"tools":       toolTalk(),
		"steer":       steerTalk(),
		"joined":      joinedTalk(),
		"interrupted": interruptedTalk(),
		"canceled":    canceledTalk(),
		"permission":  permissionTalk(),
		"summary":     summaryTalk(),
		"images":      imageTalk(),
		"untrusted":   untrustedTalk(),
		"background":  backgroundTalk(),
		"poison":      poisonTalk(),
		"byhand":      byHandTalk(),
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBuilder(sources)
			req := build(t, b, ctx)
			golden(t, name, dump(req, b.Tokens()))
		})
	}
}

func TestNothingNew(t *testing.T) {
	for name, ctx := range map[string]*record.Context{
		"empty":    talk(),
		"answered": talk(asks("Hi."), says("Hi!")),
	} {
		if _, err := NewBuilder(Sources{}).Build(ctx, "", nil, Options{}); !errors.Is(err, ErrNothingNew) {
			t.Errorf("%s: error %v, want ErrNothingNew", name, err)
		}
	}
}

func TestEstimateIsFlooredByUsage(t *testing.T) {
	h := &history{ctx: record.Context{Session: "s1"}}
	answer := says("Yes.")
	answer.Tokens = record.Tokens{Input: 10, CacheRead: 5000, CacheWrite: 400, Output: 90}
	h.add(asks("Short."), answer, asks(strings.Repeat("x", 4000)))
	b := NewBuilder(Sources{})
	build(t, b, &h.ctx)
	if n := b.Tokens(); n < 6500 || n > 6530 {
		t.Errorf("Tokens = %d, want the 5500 that were reported and about 1020 for the new message", n)
	}

	h.ctx.Summary = &record.Entry{Seq: 4, At: noon, Rec: &record.Summary{Text: "short"}}
	h.ctx.Generation++
	build(t, b, &h.ctx)
	if n := b.Tokens(); n > 1200 {
		t.Errorf("Tokens = %d after a summary: what was reported before it is of the longer context", n)
	}
}
