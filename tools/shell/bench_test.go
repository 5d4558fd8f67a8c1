package shell

import (
	"cmp"
	"encoding/json"
	"os"
	"syscall"
	"testing"
	"time"

	"daycare/engine/permission"
	"daycare/tools"
	"daycare/tools/shell/sandbox"
)

// BenchmarkExec is what a command costs at each level, with its processor time and that of all processes that it takes.
// DAYCARE_HELPER names the daycare binary that is the helper; without it the tests are, which initialise less.
func BenchmarkExec(b *testing.B) {
	self := cmp.Or(os.Getenv("DAYCARE_HELPER"), sandbox.Self())

	for _, level := range levels {
		b.Run(string(level), func(b *testing.B) {
			dir, access := b.TempDir(), permission.Default(b.TempDir())
			o := Options{Mode: Sandbox, SandboxOptions: SandboxOptions{Sandbox: string(level), Helper: self},
				AgentFolders: AgentFolders{Home: func(string) string { return dir }}}
			if level == sandbox.None {
				o.Mode = Off
			}
			list, _ := New(o)
			runner, err := choose(level, self)
			if err != nil {
				b.Skip(err)
			}

			confine := list[0].(*Exec).confine
			confine.once.Do(func() { confine.runner = runner })
			args, _ := json.Marshal(a{"command": "true"})
			before := processorTime()
			for b.Loop() {
				res, err := list[0].Run(b.Context(),
					tools.Call{ID: "c", Arguments: args, Agent: agent, Access: access, Progress: func(string) {}})
				if err != nil || res.Status != "" {
					b.Skip(res.Text, err)
				}
			}
			b.ReportMetric(float64(processorTime()-before)/float64(b.N)/1e6, "cpu-ms/op")
		})
	}
}

// processorTime is that of this process and of those that it has waited for.
func processorTime() (all time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			all += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}

	return all
}
