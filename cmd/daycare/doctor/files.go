package doctor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"daycare/cmd/daycare/term"
	"daycare/engine/beneath"
	"daycare/engine/config"
	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/permission"
	"daycare/engine/schedule"
)

// checkSettings takes the findings of settings.yaml and auth.json in.
func checkSettings(d *doctor, found []finding.Finding) {
	for _, f := range found {
		a := ailment{Finding: f}
		if f.ID == "auth-mode" {
			a.fix, a.live = chmod(f.File, 0o600), true
		}
		d.ailments = append(d.ailments, a)
	}
}

// checkTasks looks at what runs by the clock.
func checkTasks(d *doctor) error {
	paths, err := disk.Glob(d.at.Data, "cron/*/TASK.md")
	if err != nil {
		return err
	}
	ids := map[string]string{}
	for _, path := range paths {
		slug := filepath.Base(filepath.Dir(path))
		data, err := beneath.Whole(path)
		if err != nil {
			d.report(finding.Error, "file-unreadable", path, 0, err.Error(), "Check who owns the file and its mode.")
			continue
		}

		t, found := schedule.DecodeTask(path, slug, data, time.Local)
		d.add(found...)
		if other := ids[t.ID]; t.ID != "" && other != "" {
			d.report(finding.Error, "schedule-id-twice", path, lineWith(path, "taskId"),
				"the task in "+other+" has the same taskId", "Remove taskId from the copy: daycare gives it a new one.")
		}

		ids[t.ID] = filepath.Dir(path)
		if t.Agent != "" {
			if _, err := d.index.Resolve(t.Agent); err != nil {
				d.report(finding.Warning, "schedule-agent-missing", path, lineWith(path, "agentId"),
					fmt.Sprintf("agent %q does not exist", t.Agent), "List agents with: daycare agents ls")
			}
		}
	}

	strays, err := schedule.Strays(d.at.Data)
	if err != nil {
		return err
	}
	d.add(strays...)

	return checkPrompts(d)
}

func checkPrompts(d *doctor) error {
	paths, err := disk.Glob(d.at.Data, "heartbeat/*.md")
	if err != nil {
		return err
	}

	for _, path := range paths {
		data, err := beneath.Whole(path)
		if err != nil {
			d.report(finding.Error, "file-unreadable", path, 0, err.Error(), "Check who owns the file and its mode.")
			continue
		}
		_, found := schedule.DecodePrompt(path, strings.TrimSuffix(filepath.Base(path), ".md"), data)
		d.add(found...)
	}

	return nil
}

// checkRequests looks at the permissions that wait for an answer.
func checkRequests(d *doctor) error {
	queue, found, err := permission.ReadQueue(nil, d.at.Data, time.Now, d.conf.Permissions.Expiry)
	if err != nil {
		return err
	}
	d.add(found...)

	for _, p := range queue.List() {
		if _, ok := d.index.Get(p.Agent); !ok {
			path := filepath.Join(d.at.Data, "permissions", p.Token+".json")
			d.ailments = append(d.ailments,
				ailment{Finding: finding.Finding{ID: "permission-orphan", Severity: finding.Warning, File: path,
					Line:   lineWith(path, `"agentId"`),
					Reason: "the agent that asked, " + p.Agent + ", no longer exists: nothing waits for the answer",
					Remedy: "doctor --fix moves the file to the trash."}, fix: toTrash(d.at.Data, path)})
		}
	}

	return nil
}

// checkAttachments looks for references without their file, and files without a
// reference.
func checkAttachments(d *doctor) error {
	dir := filepath.Join(d.at.Data, "files")
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	content, named := map[string]string{}, map[string]bool{}
	for _, e := range entries {
		if id, _, ok := strings.Cut(e.Name(), "__"); ok {
			content[id] = e.Name()
		}
	}

	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || strings.Contains(id, "__") || isTemp(e.Name()) {
			continue
		}
		named[id] = true
		checkReference(d, filepath.Join(dir, e.Name()), id, content[id])
	}

	for id, name := range content {
		info, err := os.Lstat(filepath.Join(dir, name))
		if named[id] || err != nil || d.held && d.now.Sub(info.ModTime()) < oldTemp {
			continue // it is being kept, just now
		}
		d.ailments = append(d.ailments, ailment{Finding: finding.Finding{ID: "file-orphan", Severity: finding.Info,
			File:   filepath.Join(dir, name),
			Reason: "it has no reference: a crash interrupted its upload",
			Remedy: "doctor --fix writes the reference; or remove the file if you do not need it."},
			fix: refer(d.at.Data, name), live: true})
	}

	return nil
}

// checkReference looks at one FileReference; content is the name of its file.
func checkReference(d *doctor, path, id, content string) {
	var ref struct{ ID, Name string }
	data, err := beneath.Whole(path)
	broken := err != nil || json.Unmarshal(data, &ref) != nil || ref.ID != id
	switch {
	case content == "":
		d.report(finding.Warning, "file-missing", path, max(1, lineWith(path, `"name"`)),
			"the file that it refers to is missing", "Restore "+id+"__… from a backup, or remove the reference.")
	case broken:
		d.ailments = append(d.ailments, ailment{Finding: finding.Finding{ID: "file-reference",
			Severity: finding.Warning, File: path, Line: 1,
			Reason: "not a valid reference of file " + id, Remedy: "doctor --fix rewrites it from " + content + "."},
			fix: refer(d.at.Data, content), live: true})
	}
}

// checkLetters looks at what was dropped and not taken.
func checkLetters(d *doctor) error {
	bad, err := os.ReadDir(filepath.Join(d.at.Data, "drop", "bad"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	for _, e := range bad {
		path := filepath.Join(d.at.Data, "drop", "bad", e.Name())
		if strings.HasSuffix(e.Name(), ".reason.txt") || isTemp(e.Name()) {
			continue
		}
		why, err := beneath.Whole(path + ".reason.txt")
		if err != nil {
			why = []byte("the reason file is missing")
		}

		d.report(finding.Warning, "letter-refused", path, 1, "the dropped message was refused: "+term.OneLine(string(why), 200),
			"Correct it and move it to drop/, or remove it.")
	}

	return nil
}

// checkLedgers looks at the files of lines that no reader of their own complains about.
func checkLedgers(d *doctor) error {
	for _, k := range kinds {
		if !k.ledger {
			continue
		}
		paths, err := disk.Glob(d.at.Data, k.pattern)
		if err != nil {
			return err
		}

		for _, path := range paths {
			checkLines(d, path)
		}
	}

	return nil
}

// checkForms holds the files of agents and the letters that wait against their schemas, as
// daycare validate does for all files. A line is not reported twice.
func checkForms(d *doctor) error {
	told := map[string]bool{}
	for _, a := range d.ailments {
		told[fmt.Sprintf("%s:%d", a.File, a.Line)] = true
	}
	paths, err := Files(d.at.Data)
	if err != nil {
		return err
	}

	for _, path := range paths {
		rel, err := filepath.Rel(d.at.Data, path)
		if err != nil || !strings.HasPrefix(rel, "agents"+string(filepath.Separator)) &&
			!strings.HasPrefix(rel, "drop"+string(filepath.Separator)) {
			continue
		}

		found, err := CheckFile(path)
		if err != nil {
			continue // told by leftovers, or gone
		}

		for _, f := range found {
			place := fmt.Sprintf("%s:%d", f.File, f.Line)
			if !told[place] {
				d.add(f)
			}
			told[place] = true
		}
	}

	return nil
}

// oldTemp is how old a temporary file must be to be a crash's: writing one takes
// no minute.
const oldTemp = 10 * time.Minute

func isTemp(name string) bool { return strings.HasPrefix(name, ".tmp-") }

// checkLeftovers looks for what crashes and merges left lying.
func checkLeftovers(d *doctor) error {
	return filepath.WalkDir(d.at.Data, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return tellUnreadable(d, path, err)
		}
		name := e.Name()
		left, remains := remnantOf(name)
		switch {
		case e.IsDir() && (name == "trash" || name == "skills"):
			return fs.SkipDir
		case e.IsDir():
		case remains:
			addRemnant(d, path, e, left)
		case disk.Hidden(name): // .swap-: the owner of the folder decides what it is
			if !d.held {
				d.report(finding.Warning, "save-interrupted", path, 0,
					"a crash interrupted the swap of this file with another; it may contain your edit",
					"Leave it: daycare finishes the swap when it next loads the agent or task.")
			}
		case strings.Contains(name, ".conflict-"):
			d.report(finding.Warning, "conflict-kept", path, firstDifference(path),
				"your edit, which could not be merged with what daycare wrote at the same time",
				"Compare it with the original file, then remove it.")
		case !e.Type().IsRegular() && e.Type()&(fs.ModeSocket|fs.ModeSymlink) == 0:
			d.report(finding.Warning, "file-special", path, 0, "neither a file nor a folder", "Move it elsewhere.")
		}

		return nil
	})
}

// addRemnant reports a file that was left behind. Half-written files go away by themselves.
func addRemnant(d *doctor, path string, e fs.DirEntry, left remnant) {
	a := ailment{Finding: left.found}
	a.File = path
	if left.making {
		info, err := e.Info()
		if err != nil || d.held && d.now.Sub(info.ModTime()) < oldTemp {
			return // it is being written
		}
		a.fix, a.live = remove(path), true
	}

	d.ailments = append(d.ailments, a)
}

// firstDifference is the first line in which a kept save differs from the file that
// it was of.
func firstDifference(path string) int {
	name, _, _ := strings.Cut(path, ".conflict-")
	theirs, err := beneath.Whole(path)
	if err != nil {
		return 0
	}

	ours, _ := beneath.Whole(name) // gone: it differs from the first line on
	a, b := bytes.Split(theirs, []byte{'\n'}), bytes.Split(ours, []byte{'\n'})
	n := 0
	for n < len(a)-1 && n < len(b) && bytes.Equal(a[n], b[n]) {
		n++
	}

	return n + 1
}

func tellUnreadable(d *doctor, path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it went meanwhile
	}
	d.report(finding.Error, "file-unreadable", path, 0, err.Error(), "Check who owns it and its mode.")
	if info, serr := os.Lstat(path); serr == nil && info.IsDir() {
		return fs.SkipDir
	}

	return nil
}

// maxModes bounds how many files with a wrong mode are listed one by one.
const maxModes = 50

// checkModes looks for what other users of the machine may read.
func checkModes(d *doctor) error {
	info, err := os.Stat(d.at.Data)
	if err != nil {
		return err
	}
	wrong := map[string]fs.FileMode{}
	for _, part := range privateParts() {
		err := filepath.WalkDir(filepath.Join(d.at.Data, part), func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return nil // told by leftovers
			}
			info, err := e.Info()
			if err == nil && info.Mode()&fs.ModeSymlink == 0 && info.Mode().Perm()&0o077 != 0 && part != config.AuthName {
				wrong[path] = info.Mode()
			}

			return nil
		})
		if err != nil {
			return err
		}
	}

	var paths []string
	for path := range wrong {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		openRoot(d, mode, paths)
		return nil
	}

	for i, path := range paths {
		if i == maxModes {
			rest := paths[i:]
			d.ailments = append(d.ailments, ailment{Finding: finding.Finding{ID: "file-mode", Severity: finding.Warning, File: d.at.Data,
				Reason: fmt.Sprintf("other users can read %d more files", len(rest)), Remedy: "chmod -R go-rwx " + d.at.Data},
				live: true, fix: closeAll(rest)})
			break
		}

		want := fs.FileMode(0o600)
		if wrong[path].IsDir() {
			want = 0o700
		}
		checkMode(d, path, wrong[path].Perm(), want)
	}

	return nil
}

// openRoot reports a folder that other users can read, such as a clone of a workspace: git keeps
// no modes. That is one mistake, however many files are in the folder.
func openRoot(d *doctor, mode fs.FileMode, files []string) {
	f := finding.Finding{ID: "file-mode", Severity: finding.Warning, File: d.at.Data,
		Reason: fmt.Sprintf("found mode %04o, allowed: 0700: other users can read it", mode), Remedy: "chmod 700 " + d.at.Data}
	if len(files) > 0 {
		f.Reason += fmt.Sprintf(", and %s in it", term.Plural(len(files), "file", "files"))
		f.Remedy = "chmod -R go-rwx " + d.at.Data
	}
	d.ailments = append(d.ailments, ailment{Finding: f, fix: closeAll(append(files, d.at.Data)), live: true})
}

func checkMode(d *doctor, path string, is, want fs.FileMode) {
	d.ailments = append(d.ailments, ailment{Finding: finding.Finding{ID: "file-mode", Severity: finding.Warning, File: path,
		Reason: fmt.Sprintf("found mode %04o, allowed: %04o: other users can read it", is, want),
		Remedy: fmt.Sprintf("chmod %o %s", want, path)},
		fix: chmod(path, want), live: true})
}
