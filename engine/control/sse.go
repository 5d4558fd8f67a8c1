package control

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"daycare/engine/event"
)

const (
	eventStream = "text/event-stream"
	// keepAlive is how often a silent stream says that it lives; proxies cut
	// connections after 30 s and more.
	keepAlive = 15 * time.Second
	// writeTimeout ends a stream whose reader takes nothing at all.
	writeTimeout = 60 * time.Second
	// maxEvent bounds one event that a client reads, in bytes. The largest are
	// turn.finished and message.delta with a whole answer.
	maxEvent = 16 << 20
)

// An sseWriter writes server-sent events.
type sseWriter struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

// startSSE sends the head of a stream, so that the client knows it is subscribed.
func startSSE(w http.ResponseWriter) (*sseWriter, error) {
	h := w.Header()
	h.Set("Content-Type", eventStream)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would hold events back
	w.WriteHeader(http.StatusOK)
	s := &sseWriter{w: w, rc: http.NewResponseController(w)}
	return s, s.comment("daycare")
}

func (s *sseWriter) comment(text string) error { return s.write(": " + text + "\n\n") }

func (s *sseWriter) event(e event.Event) error { return s.data(e.ID, e.Type, e) }

// data sends one event; id may be empty.
func (s *sseWriter) data(id string, t event.Type, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode event %s: %w", t, err)
	}
	var b strings.Builder
	if id != "" {
		b.WriteString("id: " + id + "\n")
	}
	b.WriteString("event: " + string(t) + "\ndata: ")
	b.Write(data) // JSON has no raw line breaks
	b.WriteString("\n\n")
	return s.write(b.String())
}

func (s *sseWriter) write(text string) error {
	// Not every transport has deadlines; those that do not cannot hang either.
	_ = s.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := io.WriteString(s.w, text); err != nil {
		return err
	}
	return s.rc.Flush()
}

// An sseEvent is one event as it came over the wire.
type sseEvent struct {
	ID, Type string
	Data     []byte
}

// readSSE calls f with each event until the stream ends; io.EOF is a clean end.
// The bytes of Data are f's to keep.
func readSSE(r io.Reader, f func(sseEvent) error) error {
	in := bufio.NewReaderSize(r, 32<<10)
	var e sseEvent
	for {
		line, err := readLine(in)
		if err != nil {
			return err // what was begun and not ended by a blank line is not an event
		}
		if len(line) == 0 {
			if e.Data != nil {
				if err := f(e); err != nil {
					return err
				}
			}
			e = sseEvent{}
			continue
		}
		name, value, _ := strings.Cut(string(line), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			e.ID = value
		case "event":
			e.Type = value
		case "data":
			if len(e.Data)+len(value) > maxEvent {
				return errEventTooLarge
			}
			if e.Data != nil {
				e.Data = append(e.Data, '\n')
			}
			e.Data = append(e.Data, value...)
		}
	}
}

var errEventTooLarge = errors.New("an event is larger than a client reads")

// readLine returns a line without its end.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxEvent {
			return nil, errEventTooLarge
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return nil, err
		}
		line = line[:len(line)-1]
		if n := len(line); n > 0 && line[n-1] == '\r' {
			line = line[:n-1]
		}
		return line, nil
	}
}
