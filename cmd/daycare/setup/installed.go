package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"daycare/cmd/daycare/term"
	"daycare/engine/disk"
	"daycare/engine/lazyregexp"
	"daycare/engine/workspace"
)

// An Installed service is the unit of some workspace.
type Installed struct {
	Name      string `json:"name"`
	Path      string `json:"path"` // of the unit
	Workspace string `json:"workspace,omitempty"`
}

// InstalledServices lists the services that daycare service install made for this user, whatever
// their workspace; empty without a service manager.
func InstalledServices() ([]Installed, error) {
	s, err := newService(workspace.At("/"), "")
	if p := (*term.Problem)(nil); errors.As(err, &p) {
		return []Installed{}, nil
	}
	if err != nil {
		return nil, err
	}

	list := []Installed{}
	paths, err := disk.Glob(filepath.Dir(s.path), "daycare-*"+filepath.Ext(s.path))
	if err != nil {
		return nil, fmt.Errorf("list services: %w", err)
	}

	for _, path := range paths {
		unit, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("list services: %w", err)
		}
		list = append(list, Installed{Name: strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)), Path: path,
			Workspace: workspaceOf(string(unit))})
	}

	return list, nil
}

// SystemServices lists the system services that run a program.
func SystemServices(program string) ([]Installed, error) { return systemServices(systemUnits, program) }

func systemServices(units, program string) (list []Installed, err error) {
	paths, err := disk.Glob(units, "daycare*.service")
	if err != nil {
		return nil, fmt.Errorf("list services: %w", err)
	}

	for _, path := range paths {
		unit, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("list services: %w", err)
		}
		if strings.Contains(string(unit), "\nExecStart="+quoteCommand(program)+" ") {
			list = append(list, Installed{Name: strings.TrimSuffix(filepath.Base(path), ".service"), Path: path,
				Workspace: workspaceOf(string(unit))})
		}
	}

	return list, nil
}

// started finds the workspace in a unit of either kind.
var started = lazyregexp.New(`(?:--workspace ("(?:[^"\\]|\\.)*")|<string>--workspace</string><string>([^<]*)</string>)`)

// workspaceOf reads the workspace of a unit as service.unit writes it; "": it is not known.
func workspaceOf(unit string) string {
	m := started.FindStringSubmatch(unit)
	if m == nil {
		return ""
	}
	if m[2] != "" {
		return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&#34;", `"`, "&#39;", "'", "&amp;", "&").Replace(m[2])
	}

	var dir string
	if json.Unmarshal([]byte(m[1]), &dir) != nil { // quoteCommand escapes as JSON does
		return ""
	}

	return strings.NewReplacer("%%", "%", "$$", "$").Replace(dir)
}

// RemoveService stops a service and removes its unit.
func RemoveService(ctx context.Context, c *term.App, i Installed) error {
	s, err := newService(workspace.At("/"), "")
	if err != nil {
		return err
	}
	s.name, s.path, s.at.Dir = i.Name, i.Path, i.Workspace

	return uninstallService(ctx, c, s, false)
}
