package email

import (
	"strings"

	"github.com/emersion/go-message/mail"
)

// vouched reports whether our own mail server vouches for the From of a mail: the
// newest Authentication-Results (RFC 8601) of that server, which takes away those
// that pretend to be its own, say that DMARC passed for the domain, or DKIM with a
// signature of it.
func vouched(h mail.Header, authserv, from string) bool {
	for fields := h.FieldsByKey("Authentication-Results"); fields.Next(); {
		parts := strings.Split(plainResults(fields.Value()), ";")
		server := strings.Fields(parts[0])
		if len(server) == 0 || !strings.EqualFold(server[0], authserv) {
			continue
		}

		for _, result := range parts[1:] {
			if passes(strings.Fields(strings.ToLower(result)), domain(from)) {
				return true
			}
		}
		return false // older ones are someone else's, whatever they say
	}

	return false
}

// passes reads one result, such as dkim=pass header.d=example.com.
func passes(words []string, from string) bool {
	if len(words) == 0 {
		return false
	}
	props := map[string]string{}
	for _, w := range words[1:] {
		if k, v, ok := strings.Cut(w, "="); ok {
			props[k] = strings.Trim(v, `"`)
		}
	}

	switch words[0] {
	case "dmarc=pass":
		return props["header.from"] == from
	case "dkim=pass":
		d := props["header.d"]
		if d == "" {
			d = strings.TrimPrefix(props["header.i"], "@")
		}
		return aligned(from, d)
	}

	return false
}

// aligned: the signature is of the domain itself or of one that it is below.
func aligned(from, signer string) bool {
	return signer == from || strings.Contains(signer, ".") && strings.HasSuffix(from, "."+signer)
}

// plainResults takes comments out, in which anything may stand, and the semicolons
// out of quoted strings.
func plainResults(s string) string {
	var b strings.Builder
	depth, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case c == '"' && depth == 0:
			quoted = !quoted
		case quoted && (c == ';' || c == ' '):
			b.WriteByte('_')
		case c == '(' && !quoted:
			depth++
		case c == ')' && !quoted && depth > 0:
			depth--
		case depth == 0:
			b.WriteByte(c)
		}
	}

	return b.String()
}

// automatic reports mail that no user wrote: answering it may begin a loop that
// never ends.
func automatic(h mail.Header) bool {
	if a := strings.ToLower(h.Get("Auto-Submitted")); a != "" && a != "no" {
		return true
	}
	switch strings.ToLower(h.Get("Precedence")) {
	case "bulk", "junk", "list":
		return true
	}

	return h.Has("List-Id") || h.Has("X-Auto-Response-Suppress") || strings.TrimSpace(h.Get("Return-Path")) == "<>"
}
