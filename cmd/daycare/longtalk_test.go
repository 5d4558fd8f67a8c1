//go:build !race

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"daycare/engine/control"
)

// longTurns is how long the conversations are: DAYCARE_TURNS=400 for the whole.
func longTurns(t *testing.T, usual int) int {
	n, err := strconv.Atoi(cmp.Or(os.Getenv("DAYCARE_TURNS"), strconv.Itoa(usual)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// newVendorHouse is a daemon whose model is v, in a workspace with a long text and
// a picture.
func newVendorHouse(t *testing.T, v *strictVendor) *chatHouse {
	t.Helper()
	server := httptest.NewServer(v)
	t.Cleanup(server.Close)
	h := newChatHouse(t, "rules: []", "")
	var picture bytes.Buffer
	img := image.NewRGBA(image.Rect(0, 0, 64, 48))
	img.Set(3, 3, color.RGBA{R: 255, A: 255})
	if err := png.Encode(&picture, img); err != nil {
		t.Fatal(err)
	}

	for name, data := range map[string]string{
		"long.txt": strings.Repeat("a line of a long text that nobody needs\n", 3000), "picture.png": picture.String(),
		".daycare/settings.yaml": fmt.Sprintf("providers:\n  - { id: v, type: %s, baseURL: %q, model: test-model, "+
			"apiKeyEnv: ASK_SECRET }\nmodels:\n  - { id: test-model, window: %d, maxOutput: 4096, images: true }\n",
			v.wire, server.URL, v.window),
	} {
		if err := os.WriteFile(filepath.Join(h.dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	return h
}

// newcomer makes an agent that a user talks with.
func (h *chatHouse) newcomer(c *control.Client) string {
	h.t.Helper()
	a, err := c.Create(h.t.Context(), control.NewAgent{Type: "user"})
	if err != nil {
		h.t.Fatal(err)
	}
	return a.ID
}

// ask sends one message and returns the answer.
func (h *chatHouse) ask(c *control.Client, agent, text string) string {
	h.t.Helper()
	o, err := c.Stream(h.t.Context(), agent, control.Message{Text: text}, func(control.RawEvent) {})
	if err != nil {
		h.t.Fatalf("%s: %v", text, err)
	}
	return strings.TrimSpace(o.Text + o.Error)
}

// TestLongConversationOnEveryWire: a conversation that is many times as long as the
// window, with outputs larger than it and pictures, through a real daemon in each
// wire format. Nothing is refused as too long or invalid, and what was said in turn
// 3 is known at the end.
func TestLongConversationOnEveryWire(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a while")
	}
	turns := longTurns(t, 40)
	for _, wire := range []string{"anthropic", "openai", "gemini"} {
		t.Run(wire, func(t *testing.T) {
			t.Parallel()
			v := &strictVendor{wire: wire, window: 32_000}
			h := newVendorHouse(t, v)
			c := h.start()
			agent := h.newcomer(c)
			for n := 1; n <= turns; n++ {
				text := fmt.Sprintf("this is turn %d", n)
				if n == 3 {
					text += ". Remember: the code of turn 3 is swallow51"
				}
				if got := h.ask(c, agent, text); got != "Done." {
					t.Fatalf("turn %d: %q; the vendor found %v", n, got, v.invalid)
				}
			}

			if got := h.ask(c, agent, "what is the code of turn 3?"); got != "the code of turn 3 is swallow51" {
				t.Errorf("asked for turn 3: %q", got)
			}
			v.mu.Lock()
			defer v.mu.Unlock()
			if v.refused > 0 || len(v.invalid) > 0 || v.summaries == 0 {
				t.Errorf("%d refused, %d summaries, invalid: %v", v.refused, v.summaries, v.invalid)
			}

			sum := 0
			for _, s := range v.sizes {
				sum += s
			}
			t.Logf("%s: %d turns, %d requests, largest %d, mean %d tokens, at most %d pictures, %d summaries; tokens a turn:\n%s",
				wire, turns, len(v.sizes), slices.Max(v.sizes), sum/len(v.sizes), slices.Max(v.images), v.summaries, v.plot())
		})
	}
}

// plot draws the largest request of each turn, the window being the height.
func (v *strictVendor) plot() string {
	const height, width = 10, 80
	most := make([]int, width)
	last := max(slices.Max(v.turns), 1)
	for i, turn := range v.turns {
		x := min(turn*width/(last+1), width-1)
		most[x] = max(most[x], v.sizes[i])
	}

	var b strings.Builder
	for y := height; y > 0; y-- {
		fmt.Fprintf(&b, "%6d |", v.window*y/height)
		for _, m := range most {
			if m*height > v.window*(y-1) {
				b.WriteByte('#')
			} else {
				b.WriteByte(' ')
			}
		}
		b.WriteByte('\n')
	}

	return b.String()
}

// TestPromptEconomy measures what a default foreground agent sends: its fixed part by
// kind, and how much of 30 turns is not covered by a cache marker of before.
func TestPromptEconomy(t *testing.T) {
	t.Parallel()
	v := &strictVendor{wire: "anthropic", window: 1_000_000, keep: true}
	h := newVendorHouse(t, v)
	if err := os.WriteFile(filepath.Join(h.dir, "long.txt"), []byte(strings.Repeat("a line\n", 30)), 0o600); err != nil {
		t.Fatal(err)
	}

	c := h.start()
	agent := h.newcomer(c)
	for n := 1; n <= 30; n++ {
		if got := h.ask(c, agent, fmt.Sprintf("this is turn %d", n)); got != "Done." {
			t.Fatalf("turn %d: %q", n, got)
		}
	}

	v.mu.Lock()
	defer v.mu.Unlock()
	first := gjson.ParseBytes(v.bodies[0])
	system, tools := len(first.Get("system.0.text").String())/4, len(first.Get("tools").Raw)/4
	t.Logf("fixed part: system prompt about %d tokens, %d tools about %d tokens", system, len(first.Get("tools").Array()), tools)
	if system-len(h.dir)/4+tools >= 2200 { // what people write, and skills, come to it
		t.Errorf("the fixed part has about %d tokens; fewer than 2,200 are promised", system+tools)
	}
	if system < 100 || tools < 500 {
		t.Errorf("that is too little to be true: %d, %d", system, tools)
	}

	uncached, again, all := 0, 0, 0
	var marked [][]byte // what was marked to be kept, of all requests so far
	var before []byte
	for _, body := range v.bodies {
		plain := unmarked(body)
		hit := 0
		for _, m := range marked {
			if len(m) > hit && bytes.HasPrefix(plain, m) {
				hit = len(m)
			}
		}
		all += len(plain)
		uncached += len(plain) - hit
		again += max(0, shared(plain, before)-hit)
		marked, before = append(marked, boundaries(body)...), plain
	}

	t.Logf("30 turns, %d requests, about %d tokens; uncached %.2f %%, of which sent before %.2f %%", len(v.bodies), all/4,
		100*float64(uncached)/float64(all), 100*float64(again)/float64(all))
	if uncached*20 > all {
		t.Errorf("%d of %d tokens are uncached; under 5 %% are promised", uncached/4, all/4)
	}
	if again*100 > all {
		t.Errorf("%d tokens that were sent before are sent uncached", again/4)
	}
}

const cacheMark = `,"cache_control":{"type":"ephemeral"}`

func unmarked(body []byte) []byte { return bytes.ReplaceAll(body, []byte(cacheMark), nil) }

// boundaries are the parts of a request that end with a marker, without markers.
func boundaries(body []byte) (list [][]byte) {
	for at := 0; ; {
		i := bytes.Index(body[at:], []byte(cacheMark))
		if i < 0 {
			return list
		}
		at += i + len(cacheMark)
		list = append(list, unmarked(body[:at]))
	}
}

// shared is how many bytes two requests have in common at their beginning.
func shared(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
