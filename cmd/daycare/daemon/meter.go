package daemon

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"daycare/agents/providers"
)

// A meter counts what the process did, for GET /metrics. Figures of how things
// stand (what waits, what runs) are not here: they are in the status.
type meter struct {
	mu     sync.Mutex
	counts map[counter]float64
	turns  [len(turnBuckets) + 1]int // by seconds; the last beyond all buckets
	took   time.Duration
}

// A counter is one by its name and its labels, which are pairs of name and value.
type counter struct {
	name   string
	labels [6]string
}

// metrics are the counters, in the order of the exposition.
var metrics = []struct{ name, help string }{
	{"daycare_items_accepted_total", "Items accepted by inboxes."},
	{"daycare_items_done_total", "Items done."},
	{"daycare_turns_total", "Turns ended, by reason."},
	{"daycare_tool_calls_total", "Tool calls ended, by tool and status."},
	{"daycare_model_calls_total", "Model answers."},
	{"daycare_model_retries_total", "Model requests retried after a failure, by HTTP status."},
	{"daycare_tokens_total", "Model tokens, by kind: input, output, cacheRead, cacheWrite."},
	{"daycare_cost_dollars_total", "Model cost in US dollars, where prices are known."},
	{"daycare_deliveries_total", "Answer parts delivered to chats, by connector and result."},
	{"daycare_permission_requests_total", "Approval requests, by result."},
}

// turnBuckets are the bounds of the histogram of turns, in seconds.
var turnBuckets = [...]float64{0.1, 0.5, 1, 2, 5, 10, 30, 60, 300, 1800}

// add adds to a counter; labels come in pairs of name and value, at most three.
func (m *meter) add(name string, v float64, labels ...string) {
	c := counter{name: name}
	copy(c.labels[:], labels)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counts == nil {
		m.counts = map[counter]float64{}
	}
	m.counts[c] += v
}

// call counts an answer of a model.
func (m *meter) call(provider, model string, u providers.Usage, usd float64) {
	m.add("daycare_model_calls_total", 1, "provider", provider, "model", model)
	m.add("daycare_cost_dollars_total", usd, "provider", provider, "model", model)
	for _, tokens := range []struct {
		kind string
		n    int64
	}{{"input", u.Input}, {"output", u.Output}, {"cacheRead", u.CacheRead}, {"cacheWrite", u.CacheWrite}} {
		m.add("daycare_tokens_total", float64(tokens.n), "provider", provider, "model", model, "kind", tokens.kind)
	}
}

// turn counts a turn by how long it took.
func (m *meter) turn(took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := 0
	for i < len(turnBuckets) && took.Seconds() > turnBuckets[i] {
		i++
	}
	m.turns[i]++
	m.took += took
}

// labelEscape is how the text format wants values.
var labelEscape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// text is the counter as the text format has it.
func (c counter) text() string {
	var all []string
	for i := 0; i < len(c.labels) && c.labels[i] != ""; i += 2 {
		all = append(all, c.labels[i]+`="`+labelEscape.Replace(c.labels[i+1])+`"`)
	}
	if all == nil {
		return c.name
	}

	return c.name + "{" + strings.Join(all, ",") + "}"
}

// write writes the counters in the text format of Prometheus.
func (m *meter) write(w io.Writer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	values := map[string][]string{}
	for c, v := range m.counts {
		values[c.name] = append(values[c.name], fmt.Sprintf("%s %g\n", c.text(), v))
	}
	for _, one := range metrics {
		head(w, one.name, one.help, "counter")
		for _, line := range slices.Sorted(slices.Values(values[one.name])) {
			io.WriteString(w, line)
		}
	}

	const turns = "daycare_turn_seconds"
	head(w, turns, "Turn duration.", "histogram")
	sum := 0
	for i, bound := range turnBuckets {
		sum += m.turns[i]
		fmt.Fprintf(w, "%s_bucket{le=\"%g\"} %d\n", turns, bound, sum)
	}

	sum += m.turns[len(turnBuckets)]
	fmt.Fprintf(w, "%s_bucket{le=\"+Inf\"} %d\n%s_sum %g\n%s_count %d\n", turns, sum, turns, m.took.Seconds(), turns, sum)
}

func head(w io.Writer, name, help, kind string) {
	fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// WriteMetrics completes GET /metrics with what this process counted and uses.
func (b *backend) WriteMetrics(w io.Writer) {
	r := b.parts
	r.meter.write(w)
	if r.vol != nil {
		barriers, spent := r.vol.Stats()
		head(w, "daycare_barriers_total", "Disk syncs.", "counter")
		fmt.Fprintf(w, "daycare_barriers_total %d\n", barriers)
		head(w, "daycare_barrier_seconds_total", "Time spent in disk syncs.", "counter")
		fmt.Fprintf(w, "daycare_barrier_seconds_total %g\n", spent.Seconds())
	}

	head(w, "go_goroutines", "Goroutines.", "gauge")
	fmt.Fprintf(w, "go_goroutines %d\n", runtime.NumGoroutine())
	if rss, ok := resident(); ok {
		head(w, "process_resident_memory_bytes", "Memory in use.", "gauge")
		fmt.Fprintf(w, "process_resident_memory_bytes %d\n", rss)
	}
}

// resident is the memory of this process in bytes, where the system says it.
func resident() (int64, bool) {
	data, err := os.ReadFile("/proc/self/statm")
	fields := bytes.Fields(data)
	if err != nil || len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)

	return pages * int64(os.Getpagesize()), err == nil
}
