package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"daycare/engine/record"
)

// lengthen brings the history just over the size beyond which a reset rotates it. What
// makes it long is in the session before, behind the newest reset: a start and a turn
// read back to that one.
func lengthen(root string) error {
	paths, err := filepath.Glob(filepath.Join(root, "agents", "*", "history.jsonl"))
	if err != nil || len(paths) != 1 {
		return errors.Join(err, fmt.Errorf("there are %d histories, want one to lengthen", len(paths)))
	}
	data, err := os.ReadFile(paths[0])
	if err != nil {
		return err
	}

	var entries []*record.Entry
	for raw := range bytes.Lines(data) {
		e, err := record.Decode(raw)
		if err != nil {
			return fmt.Errorf("lengthen %s: %w", paths[0], err)
		}
		entries = append(entries, e)
	}

	at := slices.IndexFunc(entries, func(e *record.Entry) bool { return e.Rec.Type() == record.TypeReset })
	if at < 0 {
		return fmt.Errorf("lengthen %s: there is no reset in it", paths[0])
	}
	note := &record.Note{Text: strings.Repeat("for people ", 12_000)}
	size := len(record.Encode(&record.Entry{Seq: 1, At: entries[at].At, Rec: note}))
	notes := make([]*record.Entry, 1+(record.RotateBytes-len(data))/size)
	for i := range notes {
		notes[i] = &record.Entry{At: entries[at].At, Rec: note}
	}

	var long []byte
	for i, e := range slices.Insert(entries, at, notes...) {
		e.Seq = int64(i + 1)
		long = append(long, record.Encode(e)...)
	}

	// What was noted of the session that ended is made again: its numbers have moved.
	return errors.Join(os.WriteFile(paths[0], long, 0o600), os.Remove(filepath.Join(filepath.Dir(paths[0]), "sessions.jsonl")))
}
