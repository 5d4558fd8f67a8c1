package daemon

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestMeter(t *testing.T) {
	var m meter
	m.add("daycare_tool_calls_total", 1, "tool", `a"b\c`, "status", "ok")
	m.add("daycare_tool_calls_total", 2, "tool", `a"b\c`, "status", "ok")
	m.turn(300 * time.Millisecond)
	m.turn(time.Hour)
	var b bytes.Buffer
	m.write(&b)

	for _, want := range []string{
		"# TYPE daycare_items_accepted_total counter\n",
		`daycare_tool_calls_total{tool="a\"b\\c",status="ok"} 3` + "\n",
		`daycare_turn_seconds_bucket{le="0.1"} 0` + "\n", `daycare_turn_seconds_bucket{le="0.5"} 1` + "\n",
		`daycare_turn_seconds_bucket{le="+Inf"} 2` + "\n", "daycare_turn_seconds_sum 3600.3\n", "daycare_turn_seconds_count 2\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in:\n%s", want, b.String())
		}
	}
}
