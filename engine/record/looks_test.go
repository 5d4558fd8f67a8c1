package record

import (
	"fmt"
	"strings"
	"testing"
)

// Whoever looks for something in a history parses the lines that can have it, not the
// others: of 300 calls and results in a turn none costs more than its bytes.
func TestLooksParseOnlyWhatTheyNeed(t *testing.T) {
	h := begun(t)
	turn(t, h, "t1", "a", "b")
	seq := h.Obligations().LastSeq
	add(t, h, &TurnBegin{Turn: "t2", Items: []string{"it2"}, Attempt: 1}, user("it2", "go"))

	for i := range 300 {
		add(t, h, &ToolStart{ToolCallID: fmt.Sprint("c", i), Name: "item"},
			&ToolResult{ToolCallID: fmt.Sprint("c", i), Status: StatusOK, Output: Output{Text: strings.Repeat("x", 100)}})
	}

	for name, look := range map[string]func(dir string) error{
		"Closed":  func(string) error { _, err := h.Closed(map[string]int64{"none": 0}); return err },
		"Totals":  func(string) error { _, _, err := h.Totals(seq); return err },
		"Closing": func(string) error { _, _, err := Closing(h.dir, "none"); return err },
		"Spent":   looks["Spent"], "InContext": looks["InContext"], "CostAfter": looks["CostAfter"], "Attached": looks["Attached"],
	} {
		n := testing.AllocsPerRun(1, func() {
			if err := look(h.dir); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		if n > 300 {
			t.Errorf("%s takes %.0f allocations for 600 lines", name, n)
		}
	}
}
