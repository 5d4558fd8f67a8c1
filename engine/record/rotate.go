package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"daycare/engine/beneath"
	"daycare/engine/disk"
)

// An EndedSession is a line of sessions.jsonl.
type EndedSession struct {
	ID               string     `json:"id"`
	Title            string     `json:"title"`
	StartedAt        disk.Stamp `json:"startedAt"`
	EndedAt          disk.Stamp `json:"endedAt"`
	Messages         int        `json:"messages"`
	PromptTokens     int64      `json:"promptTokens"`
	CompletionTokens int64      `json:"completionTokens"`
	Cost             float64    `json:"cost"`
	File             string     `json:"file"`  // path of the file with its last record
	First            int64      `json:"first"` // seq of its first and last record
	Last             int64      `json:"last"`
}

// EndedSessions reads the sessions of the agent in dir that ended, oldest first. Unreadable lines
// are skipped: the file is only an index.
func EndedSessions(dir string) ([]EndedSession, error) {
	data, err := beneath.Whole(filepath.Join(dir, sessionsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read ended sessions: %w", err)
	}

	var list []EndedSession
	for line := range bytes.Lines(data) {
		var s EndedSession
		if json.Unmarshal(line, &s) == nil && s.ID != "" {
			list = append(list, s)
		}
	}

	return list, nil
}

const sessionsName = "sessions.jsonl"

// endedBy counts the session that a reset among recs ends.
func (h *folded) endedBy(recs []Record) []EndedSession {
	for _, rec := range recs {
		if _, ok := rec.(*Reset); !ok || h.file.Size() == 0 {
			continue
		}
		s, err := h.session()
		if err != nil {
			h.log.Warn("cannot count the ending session", "dir", h.dir, "err", err)
			return nil
		}
		return []EndedSession{{ID: s.ID, Title: s.Title, StartedAt: s.StartedAt, EndedAt: disk.StampOf(h.now()),
			Messages: s.Messages, PromptTokens: s.PromptTokens, CompletionTokens: s.CompletionTokens,
			Cost: s.Cost, File: historyName, First: s.First, Last: h.fold.o.LastSeq}}
	}

	return nil
}

// Rotate is called between turns, after a reset or summary was appended. It writes the line of the
// session that ended to sessions.jsonl. If the history is larger than RotateBytes and the context
// needs less than half of it, that part goes to a new file and the old file becomes
// history/NNNNNN.jsonl.
func (h *History) Rotate() (rotated bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	begin, err := h.rotatable()
	if err != nil {
		return false, err
	}

	file := historyName
	if begin > 0 {
		file, err = h.rotate(begin)
		switch {
		case errors.Is(err, disk.ErrFull):
			// The file stays as it is; the next boundary will do.
			h.log.Warn("history not rotated: the disk is full", "dir", h.dir)
			file = historyName
		case err != nil:
			return false, fmt.Errorf("rotate history: %w", err)
		}
	}

	for i := range h.tally.ended {
		h.tally.ended[i].File = file
	}
	if err = h.writeSessions(); errors.Is(err, disk.ErrFull) {
		h.log.Warn("ended session not recorded yet: the disk is full", "dir", h.dir)
		err = nil
	}

	return file != historyName, err
}

// rotatable is the offset of the oldest line to keep; 0: not now.
func (h *folded) rotatable() (int64, error) {
	size := h.file.Size()
	if size <= h.limits.rotate || h.fold.o.Turn != nil || h.fold.o.Owed || len(h.fold.loose) > 0 || h.changed() {
		return 0, nil
	}
	s, err := h.scanContext()
	if err != nil || size-s.begin > h.limits.rotate/2 {
		return 0, err
	}

	return s.begin, nil
}

// rotate keeps the lines from offset begin on and returns the old file's new name.
func (h *folded) rotate(begin int64) (name string, err error) {
	kept := make([]byte, h.file.Size()-begin)
	if _, err := h.file.ReadAt(kept, begin); err != nil {
		return "", err
	}
	if name, err = nextClosed(h.dir); err != nil {
		return "", err
	}

	// The old file is read from now on without a barrier of its own.
	if err := h.file.Barrier(); err != nil {
		return "", err
	}
	start := &Start{Session: h.fold.o.Session, V: Version, Once: h.fold.o.Once, Sources: h.fold.o.Sources, Continues: name}
	start.Outs, start.OwedFrom = h.fold.owed()
	line := Encode(&Entry{Seq: startSeq(kept, h.fold.o.LastSeq), At: h.now().UTC(), Rec: start})
	content := append(line, kept...)
	if err := h.file.Replace(content, filepath.Join(h.dir, name)); errors.Is(err, disk.ErrChanged) {
		return historyName, nil // a user was at it: the next boundary will do
	} else if err != nil {
		return "", err
	}

	h.recent.ending(content)
	return name, nil
}

// startSeq is the number of the start record of a rotated file: just below the
// first line kept, so that numbers rise down the file. The record that had it lies
// in the file before.
func startSeq(kept []byte, last int64) int64 {
	for _, line := range disk.Lines(kept) {
		if seq := seqOf(line); seq > 0 {
			return seq - 1
		}
	}

	return last
}

func nextClosed(dir string) (name string, err error) {
	paths, err := closedFiles(dir)
	if err != nil {
		return "", err
	}
	n := 0
	if len(paths) > 0 {
		n, _ = strconv.Atoi(strings.TrimSuffix(filepath.Base(paths[0]), ".jsonl")) // closedName has digits
	}

	return fmt.Sprintf("%s/%06d.jsonl", closedDir, n+1), nil
}

// writeSessions appends the lines of ended sessions. The file can be rebuilt from
// history, so a crash before it costs nothing.
func (h *folded) writeSessions() error {
	if len(h.tally.ended) == 0 {
		return nil
	}
	log, _, err := h.vol.OpenLog(filepath.Join(h.dir, sessionsName), disk.LogOptions{Name: "sessions", Valid: json.Valid})
	if err != nil {
		return fmt.Errorf("open sessions: %w", err)
	}
	defer log.Close()
	var lines []byte
	for _, s := range h.tally.ended {
		s.Cost = number(s.Cost)
		lines = append(append(lines, encoded(s)...), '\n')
	}

	if _, err := log.Append(lines); err != nil {
		return fmt.Errorf("append to sessions: %w", err)
	}
	h.tally.ended = nil
	return log.Barrier()
}
