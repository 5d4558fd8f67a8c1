package schedule

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"daycare/engine/beneath"
	"daycare/engine/cuid"
	"daycare/engine/disk"
	"daycare/engine/fault"
	"daycare/engine/finding"
)

var (
	// ErrNotFound: no task or heartbeat item has that name.
	ErrNotFound = fault.NoTask
	// ErrName: the name is not a valid slug. Names are never paths.
	ErrName = errors.New("not a valid task name: lower-case letters, digits and - only, at most 64")
	// ErrExists: a task or item with that name exists.
	ErrExists = errors.New("the name is already in use")
)

// fileStep is the failpoint prefix of TASK.md, MEMORY.md and prompts: whole files
// that users write too.
const fileStep = "task"

// A Store gives access to the tasks and heartbeat items of one .daycare directory as files. It
// caches nothing: everything is read when it is requested, so it is correct whether the daemon runs
// or not.
type Store struct {
	Root   string // the .daycare directory
	Volume *disk.Volume
	Now    func() time.Time
	Zone   func() *time.Location // time zone of tasks that name none
	// Every is the interval of the heartbeat, 0: it is switched off; Hours when it runs.
	Every func() time.Duration
	Hours func() Hours
	// Changed, if set, is called after a change.
	Changed func()
}

// files is where the tasks and prompts are.
func (s *Store) files() folder { return folder{s.Root, s.Volume, s.Now} }

// A folder is the files of the tasks and prompts in one .daycare directory.
type folder struct {
	root string
	vol  *disk.Volume
	now  func() time.Time
}

func (f folder) cron(elem ...string) string {
	return filepath.Join(append([]string{f.root, "cron"}, elem...)...)
}

func (f folder) heart(elem ...string) string {
	return filepath.Join(append([]string{f.root, "heartbeat"}, elem...)...)
}

func (s *Store) changed() {
	if s.Changed != nil {
		s.Changed()
	}
}

// read reads the file of a task or prompt.
func read(path string) ([]byte, error) {
	data, _, err := beneath.Own(path, 4*maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, filepath.Base(filepath.Dir(path)))
	}

	return data, err
}

// unread is the id of a finding about a file that cannot be read.
const unread = "schedule-unreadable"

// unreadable is what is wrong with a file that cannot be read. It costs what is in that file.
func unreadable(path string, err error) finding.Finding {
	return finding.Finding{ID: unread, Severity: finding.Error, File: path, Reason: beneath.Reason(err).Error(),
		Remedy: "check who owns the file and its mode"}
}

// slugs lists the names that a folder holds: folders, or files with a suffix.
func slugs(dir, suffix string) ([]string, []finding.Finding, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list %s: %w", dir, err)
	}
	var names []string
	var found []finding.Finding
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), suffix)
		path := filepath.Join(dir, e.Name())
		switch {
		case strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") || strings.HasPrefix(name, runsFile) || e.IsDir() && suffix != "":
		case e.IsDir() != (suffix == "") || !ok:
			found = append(found, finding.Finding{ID: "schedule-stray", Severity: finding.Warning, File: path,
				Reason: "this file is ignored: " + wanted(suffix), Remedy: "rename or move it"})
		case !ValidSlug(name):
			found = append(found, badName(path, name))
		default:
			names = append(names, name)
		}
	}

	return names, found, nil
}

func wanted(suffix string) string {
	if suffix == "" {
		return "a task is a folder with a " + taskFile
	}
	return "its name does not end in " + suffix
}

// badName reports a file or folder whose name cannot be that of a task or prompt.
func badName(path, name string) finding.Finding {
	return finding.Finding{ID: "schedule-name", Severity: finding.Error, File: path,
		Reason: fmt.Sprintf("%q is not a valid name, so it is ignored", name),
		Remedy: "rename it: lower-case letters, digits and - only, at most 64"}
}

// Strays reports files and folders among tasks and heartbeat items that are ignored because of
// their kind. Invalid names are reported with the task or item instead.
func Strays(root string) ([]finding.Finding, error) {
	_, tasks, err := slugs(filepath.Join(root, "cron"), "")
	_, prompts, err2 := slugs(filepath.Join(root, "heartbeat"), ".md")
	all := slices.DeleteFunc(append(tasks, prompts...), func(f finding.Finding) bool { return f.ID == "schedule-name" })
	return all, errors.Join(err, err2)
}

// publish replaces a file that users write too. base is what the change was made
// from; nil: there was no file. Someone else's change in between is ErrChanged.
func (f folder) publish(path string, content, base []byte) error {
	return f.put(f.vol.Exchange, path, content, base)
}

// amend is publish for what daycare adds by itself. The file keeps the time of its
// last save: a schedule that is not in the ledger yet applies from then on.
func (f folder) amend(path string, content, base []byte) error {
	return f.put(f.vol.Amend, path, content, base)
}

// put replaces a file in one of the two ways of a Volume.
func (f folder) put(replace func(step, path string, content, base []byte) ([]byte, error), path string, content, base []byte) error {
	if len(content) > maxFile {
		return fmt.Errorf("write %s: %d bytes are too much, allowed: %d", filepath.Base(path), len(content), maxFile)
	}
	if err := f.vol.MkdirAll(filepath.Dir(path)); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	if _, err := replace(fileStep, path, content, base); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}

	return nil
}

// recover ends what a crash left half done in the folders of tasks and prompts. What
// cannot be ended in one folder stays there, and keeps it from no other.
func (f folder) recover() error {
	names, _, err := slugs(f.cron(), "")
	errs := []error{err, f.vol.Recover(f.heart())}
	for _, name := range names {
		errs = append(errs, f.vol.Recover(f.cron(name)))
	}

	return errors.Join(errs...)
}

// made makes a task durable whose file is there.
func (f folder) made(slug string) error {
	return errors.Join(f.vol.SyncDir(fileStep+".dirsync", f.cron(slug)), f.vol.SyncDir(fileStep+".dirsync", f.cron()))
}

// edit changes a file, on top of what was saved meanwhile. What is as it shall be already is durable, too: a
// process that died before the sync may have written it.
func (f folder) edit(path string, change func([]byte) ([]byte, error)) error {
	same := false
	err := f.editBy(f.publish, path, func(base []byte) (content []byte, err error) {
		content, err = change(base)
		same = err == nil && string(content) == string(base)
		return content, err
	})
	if err != nil || !same {
		return err
	}

	return f.vol.SyncDir(fileStep+".dirsync", filepath.Dir(path))
}

func (f folder) editBy(put func(path string, content, base []byte) error, path string, change func([]byte) ([]byte, error)) error {
	for try := 0; ; try++ {
		base, err := read(path)
		if err != nil {
			return err
		}
		content, err := change(base)
		if err != nil || string(content) == string(base) {
			return err
		}
		if err = put(path, content, base); !errors.Is(err, disk.ErrChanged) || try == 9 {
			return err
		}
	}
}

// trash moves a folder or file to trash/<time>-<name>.
func (f folder) trash(path, name string) (string, error) {
	dir := filepath.Join(f.root, "trash")
	if err := f.vol.MkdirAll(dir); err != nil {
		return "", fmt.Errorf("make trash: %w", err)
	}
	to := filepath.Join(dir, f.now().UTC().Format("20060102T150405.000Z")+"-"+name)
	err := f.vol.Rename("trash", path, to)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w: %s", ErrNotFound, name)
	}
	if err != nil {
		return "", fmt.Errorf("move %s to trash: %w", name, err)
	}

	return to, nil
}

// identify gives a task its id, on first sight. The rest of the file, and what a
// person saves at this moment, stay as they are.
func (f folder) identify(slug string) error {
	return f.editBy(f.amend, f.cron(slug, taskFile), func(data []byte) ([]byte, error) {
		// The zone of tasks that name none changes neither the id nor what is wrong.
		if t, found := DecodeTask(slug, slug, data, time.UTC); t.ID != "" || finding.Join(found) != nil {
			return data, nil
		}
		return first(data, key{"taskId", cuid.New()}), nil
	})
}

// first writes a key as the first of its file, where users look for it.
func first(data []byte, k key) []byte {
	data = withKeys(data, key{Name: k.Name})
	_, rest, _ := strings.Cut(string(data), "\n")
	return []byte("---\n" + k.Name + ": " + k.Value + "\n" + rest)
}

// Slug turns a title into a valid name of a task or heartbeat item.
func Slug(title string) string {
	slug := strings.Trim(strings.Join(slices.DeleteFunc(strings.FieldsFunc(strings.ToLower(title), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}), func(w string) bool { return w == "" }), "-"), "-")
	if len(slug) > 40 {
		slug = strings.TrimRight(slug[:40], "-")
	}
	if slug == "" {
		slug = "task"
	}

	return slug
}

// freeSlug makes a name of a title that nothing in dir has.
func freeSlug(dir, suffix, title string) string {
	slug := Slug(title)
	name := slug
	for n := 2; disk.Exists(filepath.Join(dir, name+suffix)); n++ {
		name = fmt.Sprintf("%s-%d", slug, n)
	}

	return name
}
