package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestReferenceServersOfMcp has an agent use servers that are not this project's code:
// server-everything, server-filesystem and server-memory of npm, in DAYCARE_MCP_SERVERS, a folder
// node_modules.
func TestReferenceServersOfMcp(t *testing.T) {
	peers := os.Getenv("DAYCARE_MCP_SERVERS")
	if peers == "" {
		t.Skip("NOT TESTED against the reference servers of MCP: they need Node.js and npm\n" +
			"  npm install --prefix /tmp/mcp @modelcontextprotocol/server-{everything,filesystem,memory}\n" +
			"  DAYCARE_MCP_SERVERS=/tmp/mcp/node_modules go test ./cmd/daycare -run TestReferenceServersOfMcp")
	}
	testscript.Run(t, testscript.Params{Dir: "testdata/peers", RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"eventually": eventually},
		Setup: func(env *testscript.Env) error {
			env.Setenv("PEERS", peers)
			env.Defer(func() { stopLeftover(env.WorkDir) })
			return nil
		}})
}
