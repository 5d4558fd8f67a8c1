package doctor

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"daycare/agents/subagent"
	"daycare/engine/finding"
	"daycare/engine/schedule"
)

// The keys of a front matter are those that its reader knows.
func TestFrontMatterKeys(t *testing.T) {
	text := func(of reflect.Type) string {
		var b strings.Builder
		b.WriteString("---\n")
		for i := range of.NumField() {
			fmt.Fprintf(&b, "%s: \n", of.Field(i).Tag.Get("json"))
		}
		return b.String() + "---\ntext\n"
	}
	unknown := func(kind string, found []finding.Finding) {
		for _, f := range found {
			if strings.Contains(f.ID, "unknown") {
				t.Errorf("%s: the schema has a key that its reader does not know: %v", kind, f)
			}
		}
	}
	_, found := schedule.DecodeTask("TASK.md", "x", []byte(text(reflect.TypeFor[taskFront]())), time.UTC)
	unknown("task", found)
	_, found = schedule.DecodePrompt("x.md", "x", []byte(text(reflect.TypeFor[heartbeatFront]())))
	unknown("heartbeat", found)
	_, found = subagent.Parse("x.md", []byte(text(reflect.TypeFor[subagentFront]())))
	unknown("subagent", found)
}
