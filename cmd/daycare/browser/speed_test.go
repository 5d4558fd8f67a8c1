//go:build !race

package browser

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

// spread logs a figure that was taken several times, with its budget and how busy the machine is. It is the median that
// is compared.
func spread(t *testing.T, what string, got []float64, budget float64, unit string) {
	t.Helper()
	slices.Sort(got)
	within(t, what, got[len(got)/2], budget, unit)
	t.Logf("    %.0f to %.0f %s in %d times, load %s", got[0], got[len(got)-1], unit, len(got), load())
}

// load is the load average of the last minute; "?" where the system does not say.
func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	first, _, _ := strings.Cut(string(data), " ")
	return first
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
	p := w.visit("/")
	p.motion("no-preference")
	p.wait("document.querySelectorAll('#agents li').length >= 20", "all agents are listed")
	p.onNew(`addEventListener("DOMContentLoaded", () => {
		const look = () => {
			if (document.querySelectorAll("#agents li").length >= 20) window.listedAt = performance.now();
			else setTimeout(look, 4);
		};
		look();
	})`)
	const visits = 15
	const request = "performance.getEntriesByType('resource').find(e => e.name.endsWith('/v1/agents'))"
	var paints, asked, answers, lists []float64
	daemon := spentBy(w.daemon.Process.Pid)
	for range visits {
		p.goTo("/")
		p.wait("window.listedAt", "agents are listed")
		p.sees("Idle")
		paint := eval[float64](p, "performance.getEntriesByType('paint').at(-1).startTime")
		answered := eval[float64](p, request+".responseEnd")
		paints, answers = append(paints, paint), append(answers, answered)
		asked = append(asked, eval[float64](p, request+".requestStart"))
		lists = append(lists, eval[float64](p, "listedAt")-answered)
	}
	agents := eval[float64](p, request+".encodedBodySize")
	spread(t, "first paint of home with 1,000 agents", paints, 100, "ms")
	spread(t, "the agents are asked for after", asked, 100, "ms")
	spread(t, "the answer with 1,000 agents is here after", answers, 200, "ms")
	spread(t, "from there to the list of 1,000 agents", lists, 100, "ms")
	t.Logf("the answer with 1,000 agents has %.1f KB on the wire; the daemon takes %.0f ms of the processor for a visit", agents/1000,
		1000*(spentBy(w.daemon.Process.Pid)-daemon)/visits)

	fresh := w.visit("/") // which has nothing of this workspace in its cache
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

// Twenty agents that stream a hundred pieces a second each: frames, and what the page costs. What an empty page draws at
// the same time says how many frames this machine has.
func TestSpeedOfStreams(t *testing.T) {
	measured(t)
	const many, seconds = 20, 10
	text := strings.Repeat("word ", 100*seconds)
	w := newWorkspace(t, "rules: [ { reply: [ { text: \""+text+"\", chunk: 5, every: 10ms } ] } ]\n", "")
	w.start()
	var agents []string
	for i := range many {
		agents = append(agents, w.agent(fmt.Sprintf("agent %d", i)))
	}
	p := w.visit("/")
	p.motion("no-preference")
	run := func(shown string) {
		before := p.metrics()
		browser, daemon := spentBy(chromiumPIDs()...), spentBy(w.daemon.Process.Pid)
		p.countFrames()
		began := time.Now()
		for _, a := range agents {
			w.say(a, "go")
		}
		time.Sleep((seconds - 2) * time.Second)
		frames := eval[[]float64](p, "frames60.slice(1)")
		spent, took := p.since(before), time.Since(began).Seconds()
		browser, daemon = spentBy(chromiumPIDs()...)-browser, spentBy(w.daemon.Process.Pid)-daemon
		slices.Sort(frames)
		t.Logf("%s, load %s: %.1f frames a second, half of them within %.1f ms, 99 of 100 within %.1f ms, the longest %.0f ms",
			shown, load(), float64(len(frames))/took, frames[len(frames)/2], frames[len(frames)*99/100], frames[len(frames)-1])
		within(t, "    processor that the page took", 100*spent["ProcessTime"]/took, 30, "% of a core")
		t.Logf("    all of the browser, which draws without a graphics card here: %.0f %%; the daemon: %.0f %%",
			100*browser/took, 100*daemon/took)
		within(t, "    layouts for each frame", spent["LayoutCount"]/float64(len(frames)), 1.2, "")
		within(t, "    scripts", 100*spent["ScriptDuration"]/took, 5, "% of the time")
		for _, a := range agents {
			w.state(a, "idle")
		}
	}

	p.open("about:blank")
	run("an empty page")
	for _, path := range []string{"/agents/0", "/"} {
		p.goTo(path)
		p.settled()
		run(path)
	}
	p.goTo("/agents/0")
	p.wait("document.querySelector('main .log').innerText.length > 2000", "the whole answer is shown")
}

// countFrames has the page note how long each frame took, in frames60.
func (p *tab) countFrames() {
	p.t.Helper()
	eval[bool](p, `(() => {
		window.frames60 = [];
		let last = performance.now();
		const frame = now => { frames60.push(now - last); last = now; requestAnimationFrame(frame); };
		requestAnimationFrame(frame);
		return true;
	})()`)
}

// What the daemon pays for the page: before it was ever asked for, while nobody has it open, while one page is shown
// in which nothing happens, and while that page is hidden.
func TestSpeedOfTheDaemon(t *testing.T) {
	measured(t)
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("SKIPPED: it needs /proc")
	}
	const seconds = 10
	w := newWorkspace(t, talkScript, "")
	w.start()
	w.say(w.agent("worker"), "hello")
	rest := func(when string) {
		time.Sleep(3 * time.Second) // what just happened is over
		pid := w.daemon.Process.Pid
		before := spentBy(pid)
		time.Sleep(seconds * time.Second)
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		_, rss, _ := strings.Cut(string(status), "VmRSS:")
		rss, _, _ = strings.Cut(rss, "\n")
		t.Logf("%-40s %4.0f ms of the processor in %d s, resident %s, load %s", when, 1000*(spentBy(pid)-before), seconds,
			strings.TrimSpace(rss), load())
	}
	rest("the page was never asked for")
	p := w.visit("/")
	p.motion("no-preference")
	rest("one page is open, nothing happens")
	p.open("about:blank")
	rest("nobody has it open")
}

// spentBy is how many seconds of a processor some processes have taken; those that have ended count nothing.
func spentBy(pids ...int) (seconds float64) {
	const ticks = 100 // a second, for programs, whatever the kernel
	for _, pid := range pids {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(data), ") ")
		fields := strings.Fields(rest)
		for _, f := range fields[11:13] { // of the program, and of the system for it
			n, _ := strconv.ParseFloat(f, 64)
			seconds += n / ticks
		}
	}
	return seconds
}

// chromiumPIDs are the processes of the browser of these tests.
func chromiumPIDs() (pids []int) {
	parents := map[int]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(data), "(chrom") {
			continue
		}
		_, rest, _ := strings.Cut(string(data), ") ")
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		parents[pid], _ = strconv.Atoi(strings.Fields(rest)[1])
	}
	for pid := range parents {
		for at := pid; at != 0; at = parents[at] {
			if parents[at] == os.Getpid() {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids
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

// A history of ten thousand records: it opens at its end, and scrolls towards its beginning as a wheel does.
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
	p := w.visit("/")
	p.motion("no-preference")
	p.onNew(`addEventListener("DOMContentLoaded", () => {
		const look = () => {
			if (document.querySelectorAll("main .log li").length > 20) window.listedAt = performance.now();
			else setTimeout(look, 4);
		};
		look();
	})`)
	var shown []float64
	for range 5 {
		p.goTo("/agents/0")
		p.wait("window.listedAt", "the transcript is shown")
		p.settled()
		shown = append(shown, eval[float64](p, "listedAt"))
	}
	spread(t, "a history of 10,000 records is shown after", shown, 1000, "ms")
	before := p.metrics()
	began := time.Now()
	type scroll struct {
		Frames []float64
		Seqs   int
	}
	got := eval[scroll](p, `(async () => {
		const log = document.querySelector("main .log"), frames = [];
		const oldest = () => +document.querySelector("main .log small").innerText.match(/#(\d+)/)[1];
		const from = oldest();
		let last = await new Promise(requestAnimationFrame);
		for (let i = 0; i < 600; i++) {
			log.scrollTop -= 120;
			const now = await new Promise(requestAnimationFrame);
			frames.push(now - last);
			last = now;
		}
		return { frames, seqs: from - oldest() };
	})()`)
	slices.Sort(got.Frames)
	spent, n := p.since(before), len(got.Frames)
	t.Logf("scrolled back by %d records in %d frames, %.1f s, load %s: half of them within %.1f ms, 95 of 100 within %.1f ms",
		got.Seqs, n, time.Since(began).Seconds(), load(), got.Frames[n/2], got.Frames[n*95/100])
	long, _ := slices.BinarySearch(got.Frames, 50)
	within(t, "the longest frame while it is scrolled back", got.Frames[n-1], 50, "ms")
	t.Logf("    %d of %d frames took over 50 ms", n-long, n)
	step := func(what string) float64 { return 40_000 * spent[what] / float64(got.Seqs) }
	t.Logf("    scripts %.1f ms, styles %.1f ms, layouts %.1f ms for each step of 40 records",
		step("ScriptDuration"), step("RecalcStyleDuration"), step("LayoutDuration"))
	records := eval[float64](p, "document.querySelectorAll('main .log ol.entries > li').length")
	within(t, "records in the page then", records, 600, "records")
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
