package doctor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"daycare/engine/address"
	"daycare/engine/beneath"
	"daycare/engine/changes"
	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/folders"
	"daycare/engine/inbox"
	"daycare/engine/lan"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/workspace"
)

// checkAgentFolders looks for folders that are no agent's.
func checkAgentFolders(d *doctor) error {
	dir := filepath.Join(d.at.Data, "agents")
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch name := e.Name(); {
		case name == "handles.jsonl" || isTemp(name):
		case strings.HasPrefix(name, ".new-"):
			d.ailments = append(d.ailments, ailment{Finding: finding.Finding{ID: "agent-unfinished", Severity: finding.Info, File: path,
				Reason: "left over from an agent whose creation was interrupted; no message refers to it",
				Remedy: "The next start, or doctor --fix, removes it."}, fix: remove(path)})
		case strings.HasPrefix(name, "."):
		case !e.IsDir() || !address.ValidID(name):
			d.report(finding.Warning, "agent-folder-name", path, 0,
				"not an agent folder: those are named after the agent's id, 24 to 32 characters of a-z and 0-9",
				"Move it elsewhere.")
		}
	}

	return nil
}

// checkAgents looks at every file of every agent.
func checkAgents(d *doctor) error {
	dirs, err := disk.Glob(d.at.Data, "agents/*")
	if err != nil {
		return err
	}

	for _, dir := range dirs {
		if !address.ValidID(filepath.Base(dir)) {
			continue
		}
		if err := checkAgent(d, dir); err != nil {
			return err
		}
	}

	return nil
}

func checkAgent(d *doctor, dir string) error {
	readHistory := func(dir string) ([]finding.Finding, error) { return readHistory(d, dir) }
	for _, check := range []func(string) ([]finding.Finding, error){inbox.Check, readHistory} {
		found, err := check(dir)
		if err != nil {
			d.report(finding.Error, "file-unreadable", dir, 0, err.Error(), "Check who owns the file and its mode.")
		}

		for _, f := range found {
			a := ailment{Finding: f}
			switch f.ID {
			case "inbox-torn", "history-torn":
				a.fix, a.asleep = repairLog(f.File, dir), d.held
			case "history-bad-line", inbox.BrokenLine:
				a.fix = setAsideBroken(dir, f.File, check)
				a.Remedy = "Correct the line, or let doctor --fix move it to a file next to this one."
			}

			if f.ID == "history-part-missing" && d.conf.Retention.History > 0 {
				a.Severity, a.Remedy = finding.Info, "The settings let daycare gc delete closed parts (retention.history)."
			}
			d.ailments = append(d.ailments, a)
		}
	}

	if state, _, found, err := record.ReadState(dir); err != nil {
		d.report(finding.Error, "file-unreadable", filepath.Join(dir, "state.json"), 0, err.Error(),
			"Check who owns the file and its mode.")
	} else {
		d.add(found...)
		isElsewhere(d, dir, state)
		checkNetwork(d, dir, state.Permissions)
	}

	for _, name := range []string{address.File, "state.json"} {
		checkLink(d, filepath.Join(dir, name))
	}
	checkDraft(d, dir)
	if d.held {
		return nil // the daemon knows better which items are done
	}

	return checkOpen(d, dir)
}

// checkNetwork looks for rights that open nothing: hosts that are not on the Internet, as grants of
// earlier versions named them, and addresses that no right opens.
func checkNetwork(d *doctor, dir string, set permission.Set) {
	path := filepath.Join(dir, "state.json")
	for _, host := range set.Hosts {
		if lan.Plainly(host) {
			d.report(finding.Warning, "grant-opens-nothing", path, lineWith(path, strconv.Quote(host)),
				fmt.Sprintf("@web:%s has no effect: the host is not on the Internet", host),
				fmt.Sprintf("Grant access to its port: daycare permissions grant %s @lan:%s",
					filepath.Base(dir), net.JoinHostPort(host, "PORT")))
		}
	}

	for _, address := range set.Lan {
		if _, err := permission.Parse("@lan:" + address); err != nil {
			d.report(finding.Warning, "grant-opens-nothing", path, lineWith(path, strconv.Quote(address)),
				err.Error(), "Correct or remove it in lan.")
		}
	}
}

// isElsewhere looks for an agent that works in the place where its workspace lay before it
// was moved or copied.
func isElsewhere(d *doctor, dir string, state record.State) {
	id := filepath.Base(dir)
	if _, copied := changes.Of(state.Permissions.WorkingDir); copied {
		return // of a dry run, or a worktree
	}
	meta, _ := d.index.Get(id)
	from, sure := folders.Elsewhere(d.at, id, meta.Descriptor, state.Permissions)
	if from == "" {
		return
	}

	path := filepath.Join(dir, "state.json")
	f := finding.Finding{ID: "working-dir-elsewhere", Severity: finding.Warning, File: path, Line: lineWith(path, `"workingDir"`),
		Reason: fmt.Sprintf("the agent works in %s, outside this workspace", state.Permissions.WorkingDir),
		Remedy: `If the workspace was moved or copied, set workingDir to ".": daycare agents edit ` + id}
	var fix func(*repairer) error
	if sure {
		f.Reason += ", from where this workspace was moved or copied"
		f.Remedy = "doctor --fix sets its working directory to this workspace, with the same permissions."
		fix = func(r *repairer) error {
			return record.UpdateState(r.vol, dir, func(s *record.State) { s.Move(workspace.At(from), d.at) })
		}
	}

	d.ailments = append(d.ailments, ailment{Finding: f, fix: fix})
}

// readHistory checks a history. What looks torn while the daemon writes may be a line
// that is just being written: it is looked at twice.
func readHistory(d *doctor, dir string) ([]finding.Finding, error) {
	found, err := record.Check(dir, d.now)
	if !d.held {
		return found, err
	}
	again, err := record.Check(dir, d.now)
	var both []finding.Finding
	for _, f := range found {
		for _, g := range again {
			if f == g {
				both = append(both, f)
			}
		}
	}

	return both, err
}

// checkOpen looks for items that are closed in history and open in the inbox.
func checkOpen(d *doctor, dir string) error {
	heads, err := inbox.Survey(dir)
	if err != nil {
		return nil // told already
	}
	var over []string
	for _, h := range heads {
		if _, ok, err := record.Closing(dir, h.ID); err != nil || !ok {
			continue
		}
		over = append(over, h.ID)
		d.ailments = append(d.ailments, ailment{Finding: finding.Finding{ID: "inbox-done-missing", Severity: finding.Warning,
			File: filepath.Join(dir, inbox.FileName), Line: inbox.LineOf(dir, h.ID),
			Reason: fmt.Sprintf("item %s is done according to the history, but not marked done here", h.ID),
			Remedy: "The next start, or doctor --fix, adds the line."}})
	}

	for i := range d.ailments {
		if a := &d.ailments[i]; a.ID == "inbox-done-missing" && filepath.Dir(a.File) == dir {
			a.fix = finishItems(dir, over)
		}
	}

	return nil
}

// checkLink looks at a file that lies elsewhere.
func checkLink(d *doctor, path string) {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return
	}
	if _, err := disk.Through(d.at.Data, path); err != nil {
		d.report(finding.Warning, "file-link", path, 1,
			err.Error()+"; so daycare does not write this file: grants and usage are not saved",
			"Replace the link by the file itself, or link to a file of yours outside the workspace.")
	}
}

// checkDraft looks at an answer that was being streamed.
func checkDraft(d *doctor, dir string) {
	path := filepath.Join(dir, "draft.json")
	data, err := beneath.Whole(path)
	if err != nil {
		return
	}

	settled, err := record.Settled(dir)
	switch {
	case !json.Valid(data):
		d.report(finding.Info, "draft-broken", path, 1, "not JSON; it is only the answer that was on screen at a crash",
			"The next start removes it.")
		d.ailments[len(d.ailments)-1].fix = remove(path)
	case err == nil && settled && !d.held:
		d.report(finding.Info, "draft-leftover", path, 1, "it belongs to no open turn",
			"The next start, or doctor --fix, removes it.")
		d.ailments[len(d.ailments)-1].fix = remove(path)
	}
}

// checkParents looks for agents whose parent is not there, and for settings that name
// agents which are not.
func checkParents(d *doctor) error {
	for _, m := range d.index.All() {
		parent := m.Descriptor.ParentAgentID
		if _, ok := d.index.Get(parent); parent == "" || ok {
			continue
		}
		path := filepath.Join(d.at.Data, "agents", m.ID, "descriptor.json")
		d.report(finding.Warning, "descriptor-parent-missing", path, lineWith(path, `"parentAgentId"`),
			"its parent "+parent+" does not exist: the agent cannot report to it",
			"Restore the parent from the trash, or remove this agent: daycare agents rm "+m.Handle)
	}

	for _, k := range d.conf.Connectors {
		if k.AgentID == "" {
			continue
		}
		if _, err := d.index.Resolve(k.AgentID); err != nil {
			d.report(finding.Warning, "settings-agent-missing", filepath.Join(d.at.Data, "settings.yaml"), k.Raw.Line,
				fmt.Sprintf("connector %s sends its messages to agent %q, which does not exist", k.ID, k.AgentID),
				"List agents with: daycare agents ls")
		}
	}

	return nil
}

// lineWith is the first line of a file that has text, 0 if none has.
func lineWith(path, text string) int {
	data, err := beneath.Whole(path)
	if err != nil {
		return 0
	}
	before, _, ok := bytes.Cut(data, []byte(text))
	if !ok {
		return 0
	}

	return bytes.Count(before, []byte{'\n'}) + 1
}

// checkLines checks a ledger: a file of JSON lines that the runtime alone writes and that
// has no parser of its own. A missing file is not a finding.
func checkLines(d *doctor, path string) {
	data, err := beneath.Whole(path)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			d.report(finding.Error, "file-unreadable", path, 0, err.Error(), "Check who owns the file and its mode.")
		}
		return
	}

	n := 0
	for off, raw := range disk.Lines(data) {
		n++
		if goodLine(raw) {
			continue
		}
		if int(off)+len(raw) == len(data) {
			tornLine(d, path, n)
			continue
		}

		d.ailments = append(d.ailments, ailment{Finding: finding.Finding{ID: "lines-bad", Severity: finding.Warning, File: path, Line: n,
			Reason: "not a JSON object; the line is ignored",
			Remedy: "Correct the line, or let doctor --fix move it to a file next to this one."},
			fix: setAside(path)})
	}
}

// tornLine reports the torn last line of a ledger. With a running daemon there is nothing to do:
// it looks at the end of the file before it writes there.
func tornLine(d *doctor, path string, line int) {
	f := finding.Finding{ID: "lines-torn", Severity: finding.Warning, File: path, Line: line,
		Reason: "the last line is incomplete: a crash cut it off",
		Remedy: "The next start, or doctor --fix, removes it and keeps a copy next to the file."}
	if d.held {
		f.Severity, f.Remedy = finding.Info, "The daemon repairs it before its next write to the file."
	}
	d.ailments = append(d.ailments, ailment{Finding: f, fix: repairLog(path, "")})
}

// goodLine reports a line that a ledger's readers take, or skip in silence.
func goodLine(raw []byte) bool {
	var object map[string]json.RawMessage
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || json.Unmarshal(raw, &object) == nil
}
