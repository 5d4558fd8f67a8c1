package schedule

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"daycare/engine/beneath"
	"daycare/engine/disk"
)

// Outcome is the result of a slot.
type Outcome string

const (
	Ran     Outcome = "ran"
	Skipped Outcome = "skipped" // for a reason: gate, busy, disabled, unchanged …
	Missed  Outcome = "missed"  // nothing ran at that time, or another slot ran for it
	Failed  Outcome = "failed"
)

// Via is what started the run of a slot.
type Via string

const (
	ViaSchedule Via = ""         // on time
	ViaCatchUp  Via = "catch-up" // late
	ViaWatch    Via = "watch"    // something changed
	ViaHand     Via = "hand"     // a user or agent requested it
)

// nominal reports a slot that the schedule names.
func (v Via) nominal() bool { return v == ViaSchedule || v == ViaCatchUp }

// A line is one line of runs.jsonl. With an outcome it is the one line of its
// slot; with firing or set it is a note for the next start.
type line struct {
	Slot    *time.Time `json:"slot,omitempty"` // the nominal time
	At      time.Time  `json:"at"`             // the actual time: when it was fired, skipped or found missed
	Outcome Outcome    `json:"outcome,omitempty" allow:"ran|skipped|missed|failed"`
	Reason  string     `json:"reason,omitempty"`
	Via     Via        `json:"via,omitempty" allow:"catch-up|watch|hand"`
	Why     string     `json:"why,omitempty"` // in words, what woke it
	Item    string     `json:"item,omitempty"`
	MS      int64      `json:"ms,omitempty"`
	// Count slots from From to Slot share this line, where they are many.
	From  *time.Time `json:"from,omitempty"`
	Count int        `json:"count,omitempty"`
	// Top is the newest slot that has a line, where the clock was set back since.
	Top *time.Time `json:"top,omitempty"`

	Firing *time.Time `json:"firing,omitempty"` // this slot is being handed over
	Extra  string     `json:"extra,omitempty"`  // firing: what the gate said
	Set    string     `json:"set,omitempty"`    // text of the schedule that applies from From on
	Spec   string     `json:"spec,omitempty"`   // which schedule the slot is of
	Hash   string     `json:"hash,omitempty"`   // of what was looked at
	Remove bool       `json:"remove,omitempty"` // it ran, and the task goes to the trash
	OK     bool       `json:"ok,omitempty"`     // heartbeat: nothing to report
	Text   string     `json:"text,omitempty"`   // heartbeat: the beginning of the answer
}

// LineType is the type of a line of runs.jsonl, for its JSON Schema.
func LineType() reflect.Type { return reflect.TypeFor[line]() }

// MarshalJSON writes times as files have them.
func (l line) MarshalJSON() ([]byte, error) {
	type plain line
	return json.Marshal(struct {
		Slot   *disk.Stamp `json:"slot,omitempty"`
		At     disk.Stamp  `json:"at"`
		From   *disk.Stamp `json:"from,omitempty"`
		Firing *disk.Stamp `json:"firing,omitempty"`
		Top    *disk.Stamp `json:"top,omitempty"`
		plain
	}{stamp(l.Slot), disk.StampOf(l.At), stamp(l.From), stamp(l.Firing), stamp(l.Top), plain(l)})
}

func stamp(t *time.Time) *disk.Stamp {
	if t == nil {
		return nil
	}
	s := disk.StampOf(*t)
	return &s
}

// slot is the slot that an outcome or firing line is about.
func (l line) slot() *time.Time {
	if l.Firing != nil {
		return l.Firing
	}
	return l.Slot
}

// specHash is a schedule's text in short.
func specHash(text string) string {
	h := fnv.New32a()
	h.Write([]byte(text))
	return fmt.Sprintf("%08x", h.Sum32())
}

// write appends lines to a ledger, durably. The folder must be there: a task that
// was removed meanwhile is not made again.
func write(vol *disk.Volume, path string, lines ...line) (err error) {
	var text []byte
	for _, l := range lines {
		data, err := json.Marshal(l)
		if err != nil {
			return fmt.Errorf("encode run: %w", err)
		}
		text = append(append(text, data...), '\n')
	}
	release := vol.Turn(path)
	defer release()
	log, _, err := vol.OpenLog(path, disk.LogOptions{Name: "runs", Ballast: true, Valid: json.Valid})
	if err != nil {
		return fmt.Errorf("open ledger: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	if _, err = log.Append(text); errors.Is(err, disk.ErrChanged) {
		// Someone edits the ledger at this moment. A line that got in twice says
		// the same twice; one that got lost would make a slot run twice.
		var unlock func()
		if _, unlock, err = log.Reload(); err == nil {
			_, err = log.Append(text)
		}
		unlock()
	}
	if err != nil {
		return fmt.Errorf("write ledger: %w", err)
	}
	if err := log.Barrier(); err != nil {
		return fmt.Errorf("sync ledger: %w", err)
	}

	return rotate(log, path)
}

// tailBytes is how much of a ledger is read: some two thousand slots.
const tailBytes = 256 << 10

// rotateBytes is the size beyond which a ledger is rotated: the lines that are read
// stay in runs.jsonl, the old file becomes runs/NNNNNN.jsonl and is never written
// again. It is some days of a task that runs every minute.
const rotateBytes = 4 * tailBytes

func rotate(log *disk.Log, path string) error {
	size := log.Size()
	if size <= rotateBytes {
		return nil
	}
	kept, err := ending(log, size, tailBytes)
	if err != nil {
		return fmt.Errorf("rotate ledger: %w", err)
	}
	name, err := nextClosed(path)
	if err == nil {
		err = log.Replace(kept, name)
	}
	if errors.Is(err, disk.ErrFailed) {
		return fmt.Errorf("rotate ledger: %w", err)
	}

	return nil // where it was in use or cannot be renamed, the next line will do
}

// nextClosed is the name that the ledger at path gets when it is rotated. Where a
// crash came between its new name and the new file, it is that name.
func nextClosed(path string) (string, error) {
	dir := filepath.Join(filepath.Dir(path), "runs")
	names, err := closed(path)
	if err != nil || len(names) == 0 {
		return filepath.Join(dir, "000001.jsonl"), err
	}
	last := names[len(names)-1]
	now, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	if before, err := os.Lstat(last); err == nil && os.SameFile(before, now) {
		return last, nil
	}
	n, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(last), ".jsonl"))
	return filepath.Join(dir, fmt.Sprintf("%06d.jsonl", n+1)), err
}

// closed are the closed files of the ledger at path, the oldest first.
func closed(path string) ([]string, error) {
	return disk.Glob(filepath.Join(filepath.Dir(path), "runs"), "[0-9][0-9][0-9][0-9][0-9][0-9].jsonl") // sorted
}

// readTail reads the newest lines of a ledger, oldest first.
func readTail(path string) ([]line, error) {
	lines, err := readEnd(path, tailBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}

	return lines, err
}

// olderBytes bounds what is read where the ledger is ahead of the clock: some forty
// thousand slots.
const olderBytes = 16 << 20

// readOlder reads a ledger back to where its schedule begins, its closed files too.
func readOlder(path string) ([]line, error) {
	files, err := closed(path)
	if err != nil {
		return nil, fmt.Errorf("list ledgers: %w", err)
	}
	var all []line
	files = append(files, path)
	for i, size := len(files)-1, int64(0); i >= 0 && size < olderBytes; i-- {
		lines, err := readEnd(files[i], olderBytes-size)
		if err != nil {
			return nil, err
		}
		all = append(lines, all...)
		if slices.ContainsFunc(lines, func(l line) bool { return l.Set != "" }) {
			break
		}
		if info, err := os.Stat(files[i]); err == nil {
			size += info.Size()
		}
	}

	return all, nil
}

// longestLine bounds how far back a line is looked for, in bytes: a message of 1 MiB fits, however it is escaped.
const longestLine = 8 << 20

// ending is the lines in the last bytes of a ledger, and always the last whole one: with what heartbeat items say a line can be
// longer than what is read otherwise.
func ending(r io.ReaderAt, size, most int64) ([]byte, error) {
	for ; ; most *= 2 {
		from := max(size-most, 0)
		data := make([]byte, size-from)
		n, err := r.ReadAt(data, from)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		data = data[:n] // it may have been cut meanwhile
		if from == 0 {
			return data, nil
		}
		if _, lines, _ := bytes.Cut(data, []byte{'\n'}); bytes.IndexByte(lines, '\n') >= 0 || most > longestLine {
			return lines, nil
		}
	}
}

// readEnd reads the lines in the last bytes of a file, oldest first. Lines that are
// none are skipped: users edit this file too.
func readEnd(path string, most int64) ([]line, error) {
	f, info, err := beneath.OpenOwn(path)
	if err != nil {
		return nil, fmt.Errorf("read ledger: %w", err)
	}
	defer f.Close()
	data, err := ending(f, info.Size(), most)
	if err != nil {
		return nil, fmt.Errorf("read ledger: %w", err)
	}
	var all []line
	for _, text := range disk.Lines(data) {
		var l line
		if json.Unmarshal(text, &l) == nil {
			all = append(all, l)
		}
	}

	return all, nil
}
