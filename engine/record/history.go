package record

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/workspace"
)

// ErrGone: the folder or the history of the agent was removed. The agent ends; its files are never
// created again.
var ErrGone = errors.New("history is gone")

// RotateBytes is the size above which a history is rotated at a reset or summary, in bytes.
const RotateBytes = 8 << 20

// A History is history.jsonl of one agent, open for appending, with obligations and context kept up
// to date. It belongs to one goroutine.
type History struct {
	mu sync.Mutex // for Barrier alone, which may run beside the owner's work
	folded
}

// folded is a history with what follows from it. Whoever calls its methods holds the
// lock of the History, or has just opened it.
type folded struct {
	ownFile
	vol    *disk.Volume
	now    func() time.Time
	log    *slog.Logger
	fold   fold
	view   view
	tally  tally
	edited bool      // a user's version was taken over since the last Refresh
	looked time.Time // when the last Append began to look at the file, before its write
}

// An ownFile is history.jsonl, with what was last written to it: so it is known what
// another program changed.
type ownFile struct {
	dir    string
	file   *logFile
	recent recent
	report report
	limits limits
}

type limits struct {
	rotate int64         // bytes
	quiet  time.Duration // how long a file must be at rest to count as edited
}

// A logFile counts what is read of it: reading is to be linear in what is needed,
// never in the file.
type logFile struct {
	*disk.Log
	read int64 // bytes
}

func (f *logFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.Log.ReadAt(p, off)
	f.read += int64(n)
	return n, err
}

// Open opens the history of the agent folder dir, repairs what a crash left and folds the open
// turn. It reads back to the start of that turn, however long the file is, and writes nothing to an
// empty history. What it read is durable only after Sync.
func Open(vol *disk.Volume, dir string, now func() time.Time, log *slog.Logger) (*History, []finding.Finding, error) {
	own := ownFile{dir: dir, report: report{place: workspace.Of(dir)}, limits: limits{rotate: RotateBytes, quiet: 100 * time.Millisecond}}
	h := &History{folded: folded{ownFile: own, vol: vol, now: now, log: log}}
	if err := cleanUp(vol, dir); err != nil {
		return nil, nil, fmt.Errorf("open history: %w", err)
	}

	file, torn, err := vol.OpenLog(h.path(), disk.LogOptions{Name: "history", Ballast: true, Valid: wholeLine, Looks: true})
	if err != nil {
		return nil, nil, fmt.Errorf("open history: %w", err)
	}

	h.file = &logFile{Log: file}
	h.report.torn(h.path(), torn)
	if err := h.recover(); err != nil {
		file.Close()
		return nil, nil, fmt.Errorf("open history: %w", err)
	}

	return h, h.report.take(), nil
}

func (o *ownFile) path() string { return filepath.Join(o.dir, historyName) }

// source is the file as it stands now.
func (o *ownFile) source() *source {
	return &source{path: o.path(), r: o.file, size: o.file.Size()}
}

// wholeLine judges a last line without newline: whole, or torn by a crash.
func wholeLine(line []byte) bool {
	_, err := Decode(line)
	return err == nil || errors.Is(err, ErrUnknownType)
}

// cleanUp ends what a crash left half done: replacements in progress, and the second
// name of a history whose rotation did not get to the new file.
func cleanUp(vol *disk.Volume, dir string) error {
	// The lock, because a user's version may be on its way into the folder right now.
	unlock, err := lockFolder(dir)
	if err != nil {
		return err
	}

	err = errors.Join(vol.Recover(dir, historyName, draftName, stateName, keptState, "descriptor.json", ".descriptor.json", "SYSTEM.md"),
		vol.Recover(filepath.Join(dir, blobDir)))
	unlock()
	if err != nil {
		return err
	}

	return unlinkRotation(vol, dir)
}

// unlinkRotation removes the second name of a history whose rotation a crash cut short.
func unlinkRotation(vol *disk.Volume, dir string) error {
	paths, err := closedFiles(dir)
	if err != nil || len(paths) == 0 {
		return err
	}
	newest, err := os.Stat(paths[0])
	if err != nil {
		return err
	}

	current, err := os.Stat(filepath.Join(dir, historyName))
	if err != nil || !os.SameFile(newest, current) {
		return nil
	}

	return vol.Remove("history.rotate", paths[0])
}

// Begin opens the first session of an empty history.
func (h *History) Begin(session string) error {
	if h.file.Size() > 0 {
		if h.fold.o.Session == "" { // written by a hand, without a start
			h.fold.o.Session = session
		}
		return nil
	}
	_, err := h.Append(&Start{Session: session, V: Version})

	return err
}

// Begun reports whether the history has a session.
func (h *History) Begun() bool { return h.file.Size() > 0 && h.fold.o.Session != "" }

// Obligations returns what the agent owes now.
func (h *History) Obligations() *Obligations { return h.fold.snapshot() }

// Owing reports whether a turn is open, or must follow.
func (h *History) Owing() bool { return h.fold.o.Turn != nil || h.fold.o.Owed }

// LastSeq is that of the Obligations, without a copy of all of them.
func (h *History) LastSeq() int64 { return h.fold.o.LastSeq }

// Append writes records as whole lines in one write, without syncing them, and folds them. It fills
// in the lists of what is owed in TurnEnd and Reset from the log. If a user changed the file
// meanwhile, that version is read first. Errors: ErrGone, disk.ErrFull (nothing was written),
// disk.ErrFailed.
func (h *History) Append(recs ...Record) ([]*Entry, error) {
	if len(recs) == 0 {
		return nil, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	ended := h.endedBy(recs)
	next, at := h.fold.clone(), h.now().UTC().Truncate(time.Millisecond)
	entries, kept := make([]*Entry, len(recs)), make([]Entry, len(recs))
	lines := make([]byte, 0, 512*len(recs))
	for i, rec := range recs {
		e := &kept[i]
		*e = Entry{Seq: next.o.LastSeq + 1, At: at, Rec: stored(h.report.place, next.fill(rec))}
		begin := len(lines)
		lines = appendLine(lines, e)
		if err := e.readBack(h.report.place, lines[begin:]); err != nil {
			return nil, fmt.Errorf("read back a %s record: %w", rec.Type(), err)
		}
		next.apply(e)
		entries[i] = e
	}

	looked := time.Now()
	if err := h.write(entries, lines); err != nil {
		return nil, fmt.Errorf("append to history: %w", err)
	}
	h.fold, h.looked = next, looked
	h.tally.ended = append(h.tally.ended, ended...)

	for _, e := range entries {
		h.view.apply(e)
		h.tally.apply(e)
	}

	return entries, nil
}

// readBack makes of an entry what a restart would read from its line, byte for byte, or the prompt after it would
// differ.
func (e *Entry) readBack(at workspace.Place, line []byte) error {
	if rec := asRead(e.Rec, line); rec != nil {
		e.Rec = rec
		return nil
	}
	read, err := Decode(line)
	if err != nil {
		return err
	}
	*e = *read
	e.Rec = resolved(at, e.Rec)

	return nil
}

// Barrier returns when everything appended is durable in the file that a reader would find. Like
// Flush, and unlike all other methods, it may be called from any goroutine.
func (h *History) Barrier() error {
	for {
		if err := h.Flush(); err != nil {
			return err
		}

		// A file put in the place of ours does not have our lines.
		if !h.file.Changed() {
			return nil
		}
		h.mu.Lock()
		err := h.takeOver()
		h.mu.Unlock()
		if err != nil {
			return fmt.Errorf("sync history: %w", err)
		}
	}
}

// Flush returns when everything appended is durable in the file that it was written to. Where a user has put another
// one in its place, the next Append or Refresh finds that and adds what is missing. It may be called from any goroutine.
func (h *History) Flush() error {
	if err := h.file.Barrier(); err != nil {
		return fmt.Errorf("sync history: %w", err)
	}
	return nil
}

// Sync makes what was read by Open durable: it may be only in the page cache.
func (h *History) Sync() error { return h.Barrier() }

// Durable reports whether everything appended is durable.
func (h *History) Durable() bool { return h.file.Durable() }

// Refresh reads the file again if a user changed it. It is called before each model call. found
// lists the problems found since the last Refresh that a user should know.
func (h *History) Refresh() (changed bool, found []finding.Finding, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if changed = h.changed(); changed {
		err = h.reconcile()
	}

	h.edited, changed = false, changed || h.edited
	if err == nil && changed {
		err = h.steady(h.reportStale)
	}

	return changed, h.report.take(), err
}

// atOnce is how long the look of an Append is enough.
const atOnce = 10 * time.Millisecond

// RefreshSince is Refresh without another look at the file where an Append has just made one, after the time since: when
// what could have had the file edited ended.
func (h *History) RefreshSince(since time.Time) (changed bool, found []finding.Finding, err error) {
	h.mu.Lock()
	fresh := !h.edited && h.looked.After(since) && time.Since(h.looked) < atOnce
	h.mu.Unlock()
	if fresh {
		return false, nil, nil
	}

	return h.Refresh()
}

// takeOver takes a user's version over if there is one.
func (h *folded) takeOver() error {
	if !h.changed() {
		return nil
	}
	return h.reconcile()
}

// Close closes the file without syncing it.
func (h *History) Close() error { return h.file.Close() }
