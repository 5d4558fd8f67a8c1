//go:build !race

package browser

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/performance"
)

// measured skips a measurement unless DAYCARE_LONG asks for it: its figures mean something only on a
// machine that does nothing else, and no test fails because a machine is slow.
func measured(t *testing.T) {
	t.Helper()
	if os.Getenv("DAYCARE_LONG") == "" {
		t.Skip("SKIPPED: it measures the speed of the page; DAYCARE_LONG=1 runs it")
	}
}

// within logs a figure with its budget.
func within(t *testing.T, what string, got, budget float64, unit string) {
	t.Helper()
	note := ""
	if got > budget {
		note = "  MISSED"
	}
	t.Logf("%-58s %8.1f %s   (budget %g)%s", what, got, unit, budget, note)
}

// crowd writes the folders of many agents, as if they had been made and answered once.
func (w *workspace) crowd(many int) {
	w.t.Helper()
	w.start()
	w.say(w.agent("agent 0"), "hello")
	first := w.only()
	w.state(first, "idle")
	w.run("stop")
	w.daemon.Wait()
	w.daemon = nil
	history, descriptor := w.history(first), w.read(".daycare/agents/"+first+"/descriptor.json")
	for i := 1; i < many; i++ {
		id := fmt.Sprintf("crowd%019d", i)
		w.write(".daycare/agents/"+id+"/history.jsonl", history)
		own := strings.NewReplacer(first, id, `"agent 0"`, fmt.Sprintf(`"agent %d"`, i),
			`"channelId": "0"`, fmt.Sprintf(`"channelId": "crowd%d"`, i))
		w.write(".daycare/agents/"+id+"/descriptor.json", own.Replace(descriptor))
	}
}

// Home with a thousand agents: the first paint, the list, the bytes.
func TestSpeedOfHome(t *testing.T) {
	measured(t)
	w := newWorkspace(t, talkScript, "")
	w.crowd(1000)
	w.start()
	p := w.visit()
	p.wait("document.querySelectorAll('#agents li').length >= 20", "all agents are listed")
	p.goTo("/")
	p.onNew(`addEventListener("DOMContentLoaded", () => {
		const look = () => {
			if (document.querySelectorAll("#agents li").length >= 20) window.listedAt = performance.now();
			else setTimeout(look, 4);
		};
		look();
	})`)
	p.goTo("/")
	p.wait("window.listedAt", "agents are listed")
	p.sees("Idle")
	paint := eval[float64](p, "performance.getEntriesByType('paint').at(-1).startTime")
	listed := eval[float64](p, "listedAt")
	answered := eval[float64](p, "performance.getEntriesByType('resource').find(e => e.name.endsWith('/v1/agents')).responseEnd")
	agents := eval[float64](p, "performance.getEntriesByType('resource').find(e => e.name.endsWith('/v1/agents')).encodedBodySize")
	within(t, "first paint of home with 1,000 agents", paint, 100, "ms")
	within(t, "the answer with 1,000 agents is here after", answered, 200, "ms")
	within(t, "from there to the list of 1,000 agents", listed-answered, 100, "ms")
	t.Logf("the answer with 1,000 agents has %.1f KB on the wire", agents/1000)

	fresh := w.visit() // with an empty cache
	for _, v := range views {
		fresh.expect("/v1/")
		fresh.goTo(v.path)
	}
	fresh.goTo("/")
	files := eval[float64](fresh, `(async () => {
		let sum = 0;
		const names = new Set(["/"]);
		for (const e of performance.getEntriesByType("resource")) if (e.name.includes("/page/")) names.add(e.name);
		for (const name of names) {
			await fetch(name, { cache: "reload" });
			sum += performance.getEntriesByName(new URL(name, location.href).href).at(-1).encodedBodySize;
		}
		return sum;
	})()`)
	within(t, "what home loads, compressed", files/1000, 150, "KB")
}

// Twenty agents that stream a hundred pieces a second each: frames, and what the page costs.
func TestSpeedOfStreams(t *testing.T) {
	measured(t)
	const many, seconds = 20, 5
	text := strings.Repeat("word ", 100*seconds)
	w := newWorkspace(t, "rules: [ { reply: [ { text: \""+text+"\", chunk: 5, every: 10ms } ] } ]\n", "")
	w.start()
	var agents []string
	for i := range many {
		agents = append(agents, w.agent(fmt.Sprintf("agent %d", i)))
	}
	p := w.visit()
	p.goTo("/agents/0")
	before := p.metrics()
	eval[bool](p, `(() => {
		window.frames60 = [];
		let last = performance.now();
		const frame = now => { frames60.push(now - last); last = now; requestAnimationFrame(frame); };
		requestAnimationFrame(frame);
		return true;
	})()`)
	began := time.Now()
	for _, a := range agents {
		w.say(a, "go")
	}
	p.sees("word word word")
	time.Sleep(seconds * time.Second)
	took := time.Since(began).Seconds()
	frames := eval[[]float64](p, "frames60.slice(1)")
	spent := p.since(before)
	long := 0
	for _, f := range frames {
		if f > 33 {
			long++
		}
	}
	t.Logf("%d agents stream 100 pieces a second each: %.0f frames a second, %d of %d took over 32 ms",
		many, float64(len(frames))/took, long, len(frames))
	within(t, "processor that the page took", 100*spent["ProcessTime"]/took, 30, "% of a core")
	within(t, "layouts for each frame", spent["LayoutCount"]/float64(len(frames)), 1.2, "")
	within(t, "scripts", 100*spent["ScriptDuration"]/took, 5, "% of the time")
	for _, a := range agents {
		w.state(a, "idle")
	}
	p.wait("document.querySelector('main .log').innerText.length > 2000", "the whole answer is shown")
}

// metrics are what the browser counts of a page. ProcessTime is how many seconds of a processor its process has taken,
// with all threads; the durations beside it are of the clock, and grow while other programs run.
func (p *tab) metrics() map[string]float64 {
	p.t.Helper()
	call(p, performance.Enable, performance.EnableParams{})
	list := map[string]float64{}
	for _, m := range call(p, performance.GetMetrics, struct{}{}).Metrics {
		list[m.Name] = m.Value
	}
	return list
}

// since is what was added to the metrics.
func (p *tab) since(before map[string]float64) map[string]float64 {
	p.t.Helper()
	now := p.metrics()
	for name := range now {
		now[name] -= before[name]
	}
	return now
}

// A history of ten thousand records: it opens at its end, and scrolls to its begin.
func TestSpeedOfHistory(t *testing.T) {
	measured(t)
	w := newWorkspace(t, talkScript, "")
	w.start()
	agent := w.agent("worker")
	w.say(agent, "hello")
	w.state(agent, "idle")
	w.run("stop")
	w.daemon.Wait()
	w.daemon = nil

	w.lengthen(agent, 10_000)
	w.start()
	p := w.visit()
	began := time.Now()
	p.goTo("/agents/0")
	p.wait("document.querySelectorAll('main .log li').length > 20", "the transcript is shown")
	within(t, "a history of 10,000 records is shown after", float64(time.Since(began).Milliseconds()), 1000, "ms")
	scrolled := eval[float64](p, `(async () => {
		const log = document.querySelector("main .log");
		let worst = 0, first = "";
		for (let i = 0; i < 40; i++) {
			const began = performance.now();
			log.scrollTop = 0;
			await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
			worst = Math.max(worst, performance.now() - began);
			await new Promise(done => setTimeout(done, 60));
		}
		return worst;
	})()`)
	within(t, "the longest frame while it is scrolled back", scrolled, 50, "ms")
	within(t, "records in the page then", eval[float64](p, "document.querySelectorAll('main .log ol.entries > li').length"), 600, "records")
}

// lengthen gives an agent that has answered once a history of many records, while the daemon does not run.
func (w *workspace) lengthen(agent string, many int) {
	w.t.Helper()
	lines := strings.Split(strings.TrimSpace(w.history(agent)), "\n")
	var long strings.Builder
	long.WriteString(lines[0] + "\n")
	for i := range many {
		var r map[string]any
		if err := json.Unmarshal([]byte(lines[1+i%(len(lines)-1)]), &r); err != nil {
			w.t.Fatal(err)
		}
		r["seq"] = i + 2
		delete(r, "crc")
		if r["text"] != nil {
			r["text"] = fmt.Sprintf("record %d: %v", i, r["text"])
		}
		data, err := json.Marshal(r)
		if err != nil {
			w.t.Fatal(err)
		}
		long.Write(append(data, '\n'))
	}
	if err := os.WriteFile(w.path(".daycare/agents/"+agent+"/history.jsonl"), []byte(long.String()), 0o600); err != nil {
		w.t.Fatal(err)
	}
}
