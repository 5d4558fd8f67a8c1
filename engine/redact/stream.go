package redact

import (
	"io"
	"strings"
)

// A Stream takes secrets out of text that comes in pieces: a secret may be cut
// anywhere. What may be the beginning of one is held back until more comes. It is for
// one goroutine.
type Stream struct {
	r    *Redactor
	held string
}

// Stream makes a Stream of the secrets as they are known at each piece.
func (r *Redactor) Stream() *Stream { return &Stream{r: r} }

// Next takes a piece and returns what can be shown by now.
func (s *Stream) Next(piece string) string {
	if s.r == nil || s.r.now.Load() == nil {
		return s.Rest() + piece
	}
	known := s.r.now.Load()
	text := s.held + piece
	from := known.open(text)
	s.held = text[from:]

	return known.replace.Replace(text[:from])
}

// Rest returns what was held back: nothing more comes.
func (s *Stream) Rest() string {
	rest := s.r.Text(s.held)
	s.held = ""
	return rest
}

// open is where the first spelling begins that the end of text may have cut. A place
// inside a complete spelling does not count: the complete one does.
func (k *known) open(text string) int {
	next := 0 // where the next spelling may stand: the first one counts, not one that overlaps it
	for at := max(0, len(text)-len(k.forms[0])+1); at < len(text); at++ {
		if at < next || !k.begins(text[at:]) {
			continue
		}
		for next < at {
			next += max(1, k.whole(text[next:]))
		}
		if next == at {
			return at
		}
	}

	return len(text)
}

// begins reports whether a spelling begins with all of text and continues.
func (k *known) begins(text string) bool {
	for _, form := range k.forms {
		if len(form) <= len(text) {
			return false // the rest are shorter still
		}
		if strings.HasPrefix(form, text) {
			return true
		}
	}

	return false
}

// whole is the length of the longest spelling that text begins with; 0: of none.
func (k *known) whole(text string) int {
	for _, form := range k.forms {
		if strings.HasPrefix(text, form) {
			return len(form)
		}
	}

	return 0
}

// A Writer takes secrets out of what is written through it. Close passes on what was
// held back; it does not close the writer beneath.
type Writer struct {
	to io.Writer
	s  *Stream
}

// Writer makes a Writer to another.
func (r *Redactor) Writer(to io.Writer) *Writer { return &Writer{to, r.Stream()} }

// Write passes on what can be by now. It reports all of p as written.
func (w *Writer) Write(p []byte) (int, error) {
	if w.s.held == "" && (w.s.r == nil || w.s.r.now.Load() == nil) {
		return w.to.Write(p) // nothing is secret
	}
	if clean := w.s.Next(string(p)); clean != "" {
		if _, err := io.WriteString(w.to, clean); err != nil {
			return 0, err
		}
	}

	return len(p), nil
}

// Close passes on the rest.
func (w *Writer) Close() error {
	rest := w.s.Rest()
	if rest == "" {
		return nil
	}
	_, err := io.WriteString(w.to, rest)

	return err
}
