package shell

import (
	"encoding/json"
	"os"
	"testing"

	"daycare/engine/permission"
	"daycare/tools"
	"daycare/tools/shell/sandbox"
)

// BenchmarkExec is what a command costs at each level.
func BenchmarkExec(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}

	for _, level := range levels {
		b.Run(string(level), func(b *testing.B) {
			dir, access := b.TempDir(), permission.Default(b.TempDir())
			o := Options{Mode: Sandbox, SandboxOptions: SandboxOptions{Sandbox: string(level), Helper: self},
				AgentFolders: AgentFolders{Home: func(string) string { return dir }}}
			if level == sandbox.None {
				o.Mode = Off
			}
			list, _ := New(o)
			runner, err := probed[level]()
			if err != nil {
				b.Skip(err)
			}

			confine := list[0].(*Exec).confine
			confine.once.Do(func() { confine.runner = runner })
			args, _ := json.Marshal(a{"command": "true"})
			for b.Loop() {
				res, err := list[0].Run(b.Context(),
					tools.Call{ID: "c", Arguments: args, Agent: agent, Access: access, Progress: func(string) {}})
				if err != nil || res.Status != "" {
					b.Skip(res.Text, err)
				}
			}
		})
	}
}
