package doctor

import (
	"fmt"
	"path/filepath"
	"strings"

	"daycare/cmd/daycare/term"
	"daycare/engine/beneath"
	"daycare/engine/finding"
	"daycare/engine/permission"
)

// checkHooks names the hooks that no sandbox holds, and those whose program an agent can change:
// it would be its own guard.
func checkHooks(d *doctor) error {
	path := filepath.Join(d.at.Data, "settings.yaml")
	sets := d.rights()
	for _, m := range d.conf.Hooks.Moments() {
		for _, h := range m.Hooks {
			line := lineWith(path, h.Command)
			if h.Sandbox != nil && !*h.Sandbox {
				d.report(finding.Info, "hook-unsandboxed", path, line, fmt.Sprintf("the %s hook %s runs without the sandbox, as you set",
					m.Name, term.OneLine(h.Command, 80)), "If it needs no network and no other files, remove sandbox: false.")
			}
			for _, word := range strings.Fields(h.Command) {
				if file, ok := d.changeable(strings.Trim(word, `"'`), sets); ok {
					d.report(finding.Warning, "hook-in-grant", path, line, fmt.Sprintf("the %s hook runs %s, which agents can change",
						m.Name, file), "Move it to "+filepath.Join(d.at.Data, "hooks")+", where agents cannot write.")
				}
			}
		}
	}

	return nil
}

// changeable is the file that a word of a command names, if an agent can change it.
func (d *doctor) changeable(word string, sets map[string]permission.Set) (file string, ok bool) {
	if !strings.ContainsRune(word, filepath.Separator) {
		return "", false
	}
	if file = word; !filepath.IsAbs(file) {
		file = filepath.Join(d.at.Dir, file)
	}
	if !term.Exists(file) {
		return "", false
	}
	file = beneath.Real(file)
	if permission.Beneath(beneath.Real(d.at.Data), file) {
		return "", false
	}
	for _, set := range sets {
		if set.Allows(permission.Write{Path: file}) {
			return file, true
		}
	}

	return "", false
}
