package e2ee

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"daycare/engine/disk"
)

// A change is one value that became another; a value that is null is gone. A line of the file is
// an array of changes that take effect together.
type change struct {
	Shelf string          `json:"s"`
	Key   string          `json:"k"`
	Value json.RawMessage `json:"v"`
}

// When the file is rewritten: when it is this much larger than its current values, and this many
// times as large.
const (
	slack  = 256 << 10
	excess = 3
)

// A ledger is values by shelf and key, as JSON, in a file to which changes are added. What was
// put is durable after the next flush, all of it or nothing.
type ledger struct {
	mu     sync.Mutex
	file   *disk.Log
	values map[string]map[string]json.RawMessage
	size   int64 // of values and their keys
	fresh  []change
}

// openLedger reads the file. Changes that cannot be read are an error: nothing is written over them.
func openLedger(file *disk.Log) (*ledger, error) {
	l := &ledger{file: file, values: map[string]map[string]json.RawMessage{}}
	data := make([]byte, file.Size())
	if n, err := file.ReadAt(data, 0); err != nil && !(errors.Is(err, io.EOF) && n == len(data)) {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	number := 0
	for _, line := range disk.Lines(data) {
		number++
		var changes []change
		if err := json.Unmarshal(line, &changes); err != nil {
			return nil, fmt.Errorf("read keys: line %d: %w", number, err)
		}
		for _, c := range changes {
			l.apply(c)
		}
	}

	return l, nil
}

// apply reports whether the change changed anything. mu is held, or nobody else has l yet.
func (l *ledger) apply(c change) bool {
	shelf := l.values[c.Shelf]
	before, had := shelf[c.Key]
	weigh := func(v json.RawMessage) int64 { return int64(len(c.Shelf) + len(c.Key) + len(v)) }
	if had && bytes.Equal(before, c.Value) || !had && gone(c.Value) {
		return false
	}
	if had {
		l.size -= weigh(before)
	}
	if gone(c.Value) {
		if delete(shelf, c.Key); len(shelf) == 0 {
			delete(l.values, c.Shelf)
		}
		return true
	}
	if shelf == nil {
		shelf = map[string]json.RawMessage{}
		l.values[c.Shelf] = shelf
	}
	shelf[c.Key] = c.Value
	l.size += weigh(c.Value)

	return true
}

func gone(v json.RawMessage) bool { return len(v) == 0 || string(v) == "null" }

// put sets a value; nil removes it.
func (l *ledger) put(shelf, key string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("keep a key: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := (change{shelf, key, data}); l.apply(c) {
		l.fresh = append(l.fresh, c)
	}

	return nil
}

// drop removes a value.
func (l *ledger) drop(shelf, key string) { _ = l.put(shelf, key, nil) } // null is JSON

// get reads a value; false if the key has none.
func (l *ledger) get(shelf, key string, value any) (bool, error) {
	l.mu.Lock()
	data, ok := l.values[shelf][key]
	l.mu.Unlock()
	if !ok {
		return false, nil
	}
	if err := json.Unmarshal(data, value); err != nil {
		return false, fmt.Errorf("read a key that was kept: %w", err)
	}

	return true, nil
}

// keys are those of a shelf, in order.
func (l *ledger) keys(shelf string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.values[shelf]))
}

// flush makes everything durable that was put.
func (l *ledger) flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.fresh) == 0 {
		return nil
	}
	line, err := json.Marshal(l.fresh)
	if err != nil {
		return fmt.Errorf("keep keys: %w", err)
	}
	if _, err := l.file.Append(append(line, '\n')); err != nil {
		return fmt.Errorf("keep keys: %w", err)
	}
	if err := l.file.Barrier(); err != nil {
		return fmt.Errorf("keep keys: %w", err)
	}
	l.fresh = nil
	if l.file.Size() < slack+excess*l.size {
		return nil
	}

	return l.rewrite()
}

// rewrite replaces the file by one of the current values. mu is held.
func (l *ledger) rewrite() error {
	var b bytes.Buffer
	for _, shelf := range slices.Sorted(maps.Keys(l.values)) {
		var all []change
		for _, key := range slices.Sorted(maps.Keys(l.values[shelf])) {
			all = append(all, change{shelf, key, l.values[shelf][key]})
		}
		line, err := json.Marshal(all)
		if err != nil {
			return fmt.Errorf("keep keys: %w", err)
		}
		b.Write(append(line, '\n'))
	}
	if err := l.file.Replace(b.Bytes(), ""); err != nil {
		return fmt.Errorf("keep keys: %w", err)
	}

	return nil
}
