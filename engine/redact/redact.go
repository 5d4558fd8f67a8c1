package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf16"
)

// Mark stands where a secret was.
const Mark = "[redacted]"

// Shortest is the length in bytes below which nothing is taken for a secret: short
// words would make texts unreadable, and "ollama" as a key is a formality.
const Shortest = 8

// A Redactor replaces secrets. Its methods may be called from many goroutines at
// once, also while Set changes what is secret. A nil Redactor knows none.
type Redactor struct {
	now atomic.Pointer[known]
}

// known are the spellings that are looked for, the longest first.
type known struct {
	replace *strings.Replacer
	forms   []string
}

// New makes a Redactor of secrets.
func New(secrets ...string) *Redactor {
	r := &Redactor{}
	r.Set(secrets)
	return r
}

// Set replaces the secrets that are looked for.
func (r *Redactor) Set(secrets []string) {
	var all []string
	for _, s := range secrets {
		if s = strings.TrimSpace(s); len(s) >= Shortest {
			all = append(all, forms(s)...)
		}
	}

	// Of two that begin at the same place the first of the list is taken.
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	all = slices.Compact(all)
	if len(all) == 0 {
		r.now.Store(nil)
		return
	}

	var pairs []string
	for _, form := range all {
		pairs = append(pairs, form, Mark)
	}
	r.now.Store(&known{strings.NewReplacer(pairs...), all})
}

// Text is s without secrets.
func (r *Redactor) Text(s string) string {
	if r == nil {
		return s
	}
	known := r.now.Load()
	if known == nil {
		return s
	}

	return known.replace.Replace(s)
}

// JSON is a JSON value without secrets. What would no longer be JSON (a secret
// that stands there as a number) becomes a JSON string.
func (r *Redactor) JSON(raw json.RawMessage) json.RawMessage {
	clean := r.Text(string(raw))
	if clean == string(raw) {
		return raw
	}
	if json.Valid([]byte(clean)) {
		return json.RawMessage(clean)
	}

	quoted, err := json.Marshal(clean)
	if err != nil {
		return json.RawMessage(`"` + Mark + `"`)
	}

	return quoted
}

// Attr is for slog.HandlerOptions.ReplaceAttr.
func (r *Redactor) Attr(_ []string, a slog.Attr) slog.Attr {
	switch v := a.Value.Any().(type) {
	case string:
		a.Value = slog.StringValue(r.Text(v))
	case error:
		a.Value = slog.StringValue(r.Text(v.Error()))
	default:
		// Numbers, times and levels are looked at only as text, and stay what they
		// are when there is nothing in them.
		if text := fmt.Sprint(v); r.Text(text) != text {
			a.Value = slog.StringValue(r.Text(text))
		}
	}

	return a
}

// forms are the spellings of a secret.
func forms(s string) []string {
	all := []string{s}
	add := func(form string) {
		if len(form) >= Shortest && !slices.Contains(all, form) {
			all = append(all, form)
		}
	}
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		add(encoding.EncodeToString([]byte(s)))
		for offset := range 3 {
			add(inside(encoding, s, offset))
		}
	}

	lower := hex.EncodeToString([]byte(s))
	add(lower)
	add(strings.ToUpper(lower))
	for _, escaped := range []string{url.QueryEscape(s), url.PathEscape(s)} {
		add(escaped)
		add(lowerPercent(escaped))
	}

	for _, html := range []bool{true, false} {
		add(quote(s, html))
	}
	add(ascii(s))
	return all
}

// inside is what base64 makes of s whatever stands around it, when s begins
// offset bytes into a group of three: without the characters at its edges, which
// hold bits of its neighbours too.
func inside(encoding *base64.Encoding, s string, offset int) string {
	encoded := encoding.EncodeToString(append(make([]byte, offset), s...))
	from := []int{0, 2, 3}[offset]
	to := (offset + len(s)) * 8 / 6
	return encoded[min(from, to):to]
}

// lowerPercent writes %2F as %2f, as some programs do.
func lowerPercent(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], bytes.ToLower(b[i+1:i+3]))
		}
	}

	return string(b)
}

// quote is s as it stands between the quotes of a JSON string.
func quote(s string, html bool) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(html)
	if enc.Encode(s) != nil {
		return ""
	}
	quoted := strings.TrimSpace(b.String())

	return quoted[1 : len(quoted)-1]
}

// ascii is quote as programs write it that send nothing but ASCII.
func ascii(s string) string {
	var b strings.Builder
	for _, r := range quote(s, false) {
		switch {
		case r < 0x80:
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}

	return b.String()
}
