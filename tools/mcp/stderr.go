package mcp

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"time"
)

const (
	// maxLog is how much of what a server wrote to its standard error is kept, in bytes.
	maxLog = 64 << 10
	// saveEvery is how long a line may wait before the file has it.
	saveEvery = time.Second
)

// A stderr is the end of what a server wrote to its standard error, with notes of daycare, in
// memory and in a file.
type stderr struct {
	path  string
	write func(path string, data []byte) error

	mu    sync.Mutex
	text  []byte
	timer *time.Timer
}

func newStderr(path string, write func(string, []byte) error) *stderr {
	return &stderr{path: path, write: write}
}

// Write never fails: a server does not end because its log cannot be kept.
func (l *stderr) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	if over := len(l.text) - maxLog; over > 0 {
		cut := over
		if i := bytes.IndexByte(l.text[over:], '\n'); i >= 0 {
			cut += i + 1
		}
		l.text = append(l.text[:0], l.text[min(cut, len(l.text)):]...)
	}
	if l.timer == nil {
		l.timer = time.AfterFunc(saveEvery, l.save)
	}

	return len(p), nil
}

// note writes a line of daycare.
func (l *stderr) note(text string) {
	fmt.Fprintf(l, "[daycare, %s] %s\n", time.Now().UTC().Format(time.DateTime), strings.TrimSpace(text))
}

// save writes the file.
func (l *stderr) save() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer == nil {
		return // nothing new
	}
	l.timer.Stop()
	l.timer = nil
	if l.write != nil {
		l.write(l.path, l.text) // it is only for those who look
	}
}

// String is what is kept.
func (l *stderr) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}
