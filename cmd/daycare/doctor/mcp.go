package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"

	"daycare/cmd/daycare/daemon"
	"daycare/engine/config"
	"daycare/engine/finding"
	"daycare/tools/mcp"
)

// checkMCP looks whether the programs of MCP servers are there, and what they changed of their
// tools.
func checkMCP(d *doctor) error {
	d.add(config.ReadProject(d.at.Data).Found...)
	for _, s := range d.conf.MCP.Servers {
		settings := filepath.Join(d.at.Data, config.Name)
		if s.Command != "" && !strings.Contains(s.Command, "/") {
			if _, err := exec.LookPath(s.Command); err != nil {
				d.report(finding.Warning, "mcp-program-missing", settings, 0,
					fmt.Sprintf("the MCP server %s cannot start: there is no program %s in PATH", s.ID, s.Command),
					"Install it, or correct command of this server.")
			}
		}
		found, err := CheckFile(mcp.Path(filepath.Join(d.at.Data, daemon.MCPDir), s.ID))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			d.report(finding.Error, "file-unreadable", filepath.Join(d.at.Data, daemon.MCPDir), 0, err.Error(),
				"Check who owns the file and its mode.")
		}
		d.add(found...)
	}

	return nil
}
