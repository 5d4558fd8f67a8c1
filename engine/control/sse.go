package control

import (
	"bufio"
	"bytes"
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
	// connections after 30 s and more, and the page connects again after 15.
	keepAlive = 10 * time.Second
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

// startSSE begins a stream. The first flush sends its head, from which the client knows that it is subscribed.
func startSSE(w http.ResponseWriter) (*sseWriter, error) {
	h := w.Header()
	h.Set("Content-Type", eventStream)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would hold events back
	w.WriteHeader(http.StatusOK)
	s := &sseWriter{w: w, rc: http.NewResponseController(w)}

	return s, s.comment("daycare")
}

// comment puts a line that clients pass over into the buffer.
func (s *sseWriter) comment(text string) error { return s.write([]byte(": " + text + "\n\n")) }

// alive sends a comment, so that readers and proxies do not take the stream for broken.
func (s *sseWriter) alive() error { return errors.Join(s.comment(""), s.flush()) }

// send sends one event at once; id may be empty.
func (s *sseWriter) send(id string, t event.Type, v any) error {
	return errors.Join(s.value(id, t, v), s.flush())
}

// value puts an event into the buffer. What is there when the handler returns is sent with the end of the answer.
func (s *sseWriter) value(id string, t event.Type, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode event %s: %w", t, err)
	}

	return s.put(id, t, data)
}

// event puts an event into the buffer of the connection. Its JSON is made once,
// however many watch.
func (s *sseWriter) event(e event.Event) error {
	data, err := e.MarshalJSON()
	if err != nil {
		return fmt.Errorf("encode event %s: %w", e.Type, err)
	}

	return s.put(e.ID, e.Type, data)
}

func (s *sseWriter) put(id string, t event.Type, data []byte) error {
	return s.write(frame(id, t, data))
}

// frame is one event as it is sent.
func frame(id string, t event.Type, data []byte) []byte {
	b := make([]byte, 0, len(data)+len(id)+len(t)+32)
	if id != "" {
		b = append(append(append(b, "id: "...), id...), '\n')
	}
	b = append(append(append(b, "event: "...), t...), "\ndata: "...)
	b = append(b, data...) // JSON has no raw line breaks

	return append(b, "\n\n"...)
}

// Relay calls f with each event of a stream, as it is sent, and its id, which may be empty, until the stream ends.
func Relay(r io.Reader, f func(id string, event []byte) error) error {
	err := readSSE(r, func(e sseEvent) error {
		lines := bytes.ReplaceAll(e.Data, []byte("\n"), []byte("\ndata: "))
		return f(e.ID, frame(e.ID, event.Type(e.Type), lines))
	})
	if errors.Is(err, io.EOF) {
		return nil
	}

	return err
}

// Event is a gap as it is sent.
func (g Gap) Event() ([]byte, error) {
	data, err := json.Marshal(g)
	return frame("", GapType, data), err
}

func (s *sseWriter) write(p []byte) error {
	// Not every transport has deadlines; those that do not cannot hang either.
	_ = s.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	_, err := s.w.Write(p)
	return err
}

func (s *sseWriter) flush() error { return s.rc.Flush() }

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

var errEventTooLarge = errors.New("an event exceeds the size limit of clients")

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
