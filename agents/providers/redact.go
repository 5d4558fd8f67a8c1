package providers

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
)

// Redacted stands for a secret.
const Redacted = "[redacted]"

// minSecret is the shortest value that is taken for a secret: "ollama" as a key
// is a formality, and short words would make error messages unreadable.
const minSecret = 8

// redactor takes known values out of texts, in the spellings in which a service
// or net/http may send them back.
type redactor struct{ r *strings.Replacer }

func newRedactor(secrets []string) redactor {
	var pairs []string
	for _, s := range secrets {
		if s = strings.TrimSpace(s); len(s) < minSecret {
			continue
		}
		quoted, _ := json.Marshal(s)
		for _, form := range []string{
			s,
			strings.Trim(string(quoted), `"`),
			url.QueryEscape(s),
			url.PathEscape(s),
			base64.StdEncoding.EncodeToString([]byte(s)),
			base64.RawURLEncoding.EncodeToString([]byte(s)),
		} {
			pairs = append(pairs, form, Redacted)
		}
	}

	return redactor{strings.NewReplacer(pairs...)}
}

func (r redactor) text(s string) string { return r.r.Replace(s) }

// err returns err itself if its text is clean, so that errors.Is still works.
func (r redactor) err(err error) error {
	if err == nil {
		return nil
	}
	if s := r.text(err.Error()); s != err.Error() {
		return errors.New(s)
	}

	return err
}
