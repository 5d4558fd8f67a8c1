//go:build !race

package browser

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// What the page says about an answer and about costs is what the API says.
func TestFiguresOfThePage(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, demoScript, demoSettings)
	w.furnish()
	w.start()
	w.live()
	p := w.visit("/")
	turn := eval[string](p, "fetch('/v1/agents/0/history?limit=50').then(r => r.json()).then(h => h.records.findLast(r => r.turn).turn)")
	var why struct {
		Calls   int
		Cost    float64
		Tokens  struct{ Input, Output, CacheRead, CacheWrite int64 }
		Prompt  []struct{ Tokens int64 }
		Records []struct {
			Type   string
			Fields struct{ MS int64 }
		}
	}
	w.api("GET", "/v1/why/"+turn, nil, &why)
	if why.Calls == 0 || why.Cost == 0 || why.Tokens.Input == 0 {
		t.Fatalf("the turn has nothing to compare: %+v", why)
	}

	p.goTo("/agents/0?why=" + turn)
	p.sees("What happened, in")
	p.looks("why")
	pairs := eval[map[string]string](p, `Object.fromEntries([...document.querySelectorAll("dialog[open] dl.pairs dt")]
		.map(e => [e.innerText, e.nextElementSibling.innerText]))`)
	in := why.Tokens.Input + why.Tokens.CacheRead + why.Tokens.CacheWrite
	for name, want := range map[string]string{
		"Model calls": fmt.Sprint(why.Calls), "Tokens out": thousands(why.Tokens.Output), "Cost": money(why.Cost),
		"Tokens in, of which cached": thousands(in) + " · " + thousands(why.Tokens.CacheRead),
	} {
		if strings.TrimPrefix(pairs[name], "~") != want {
			t.Errorf("%s is shown as %q, want %q", name, pairs[name], want)
		}
	}
	steps := 0
	for _, r := range why.Records {
		if r.Type == "assistant_message" || r.Type == "tool_result" || r.Type == "delivery" {
			steps++
		}
	}
	rows := eval[int](p, "[...document.querySelectorAll('dialog[open] .waterfall rect:not(.gap):not(.before)')].length")
	if rows != steps {
		t.Errorf("the waterfall has %d steps, the turn %d", rows, steps)
	}

	for _, by := range []string{"agent", "model", "purpose"} {
		var bill struct {
			Rows []struct {
				Cost  float64
				Calls int
			}
			Total struct{ Cost float64 }
		}
		w.api("GET", "/v1/cost?by="+by, nil, &bill)
		p.goTo("/costs?by=" + by + "&since=7d")
		p.wait("document.querySelector('main tbody tr')", "the rows are shown")
		sum := 0.0
		for _, r := range bill.Rows {
			sum += r.Cost
			if r.Calls == 0 {
				continue
			}
			found := fmt.Sprintf(`[...document.querySelectorAll("main tbody tr")].some(r => r.cells[1].innerText === %q &&
				r.cells[6].innerText.replace("~", "") === %q)`, fmt.Sprint(r.Calls), money(r.Cost))
			if !eval[bool](p, found) {
				t.Errorf("by %s no row has %d calls for %s:\n%s", by, r.Calls, money(r.Cost), p.text())
			}
		}
		if money(sum) != money(bill.Total.Cost) {
			t.Errorf("by %s the rows come to %s, the total is %s", by, money(sum), money(bill.Total.Cost))
		}
	}
}

// money is an amount as the page shows it.
func money(usd float64) string {
	if usd != 0 && usd < 0.01 {
		return fmt.Sprintf("$%.4f", usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}

func thousands(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

// A time in which nothing ran is a step of its own, and an answer shows when it began to come.
func TestNothingRan(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, talkScript, "")
	w.start()
	w.agent("worker")
	p := w.visit("/agents/0?why=told", `
		const send = fetch, at = s => new Date(Date.UTC(2026, 0, 2, 3, 4, s)).toISOString();
		const records = [
			{ seq: 1, at: at(0), type: "turn_begin", fields: {} },
			{ seq: 2, at: at(2), type: "assistant_message", fields: { ms: 2000, firstMs: 500, tokens: { input: 10, output: 2 }, cost: 0.02,
				toolCalls: [{ id: "c", name: "read", arguments: { path: "notes.txt" } }] } },
			{ seq: 3, at: at(6), type: "tool_result", fields: { toolCallId: "c", name: "read", status: "ok", ms: 1000 } },
			{ seq: 4, at: at(8), type: "assistant_message", fields: { ms: 2000, tokens: { input: 12, output: 2 }, cost: 0.02 } },
		];
		const told = { id: "told", records, calls: 2, cost: 0.04, tokens: { input: 22, output: 4 } };
		window.fetch = (path, options) => path === "/v1/why/told" ? Promise.resolve(Response.json(told)) : send(path, options);`)
	p.sees("What happened, in 8.0s")
	p.looks("why, with a gap")
	type step struct{ Name, Took string }
	got := eval[[]step](p, `[...document.querySelectorAll("dialog[open] .waterfall svg")].map(s =>
		({ name: s.previousElementSibling.innerText, took: s.nextElementSibling.innerText }))`)
	want := []step{{"Model call 1", "2.0s"}, {"Nothing ran", "3.0s"}, {"read notes.txt", "1.0s"}, {"Model call 2", "2.0s"}}
	if !slices.Equal(got, want) {
		t.Errorf("the steps are %v, want %v", got, want)
	}
	wide := eval[string](p, "document.querySelector('dialog[open] .waterfall rect.before').getAttribute('width')")
	if wide != "62.5" { // of 1000: 0.5 of 8 s
		t.Errorf("the wait for the first piece is %s wide, want 62.5", wide)
	}
	p.sees("First piece of an answer after")
}
