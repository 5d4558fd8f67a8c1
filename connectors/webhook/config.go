package webhook

import (
	"errors"
	"fmt"
	"net/url"
	"slices"

	"daycare/connectors"
	"daycare/engine/lazyregexp"
)

// Options are the settings of one webhook connector:
//
//	connectors:
//	  - id: hooks
//	    type: webhook
//	    listen: 127.0.0.1:8787
//	    hooks:
//	      - id: deploys
//	        secretEnv: DEPLOYS_SECRET
//	        agentId: ""        # "": an agent of the hook's own
//	        template: "Deploy of {{.app}}: {{.status}}"
//	        callback: https://ci.example/daycare
type Options struct {
	ID     string `json:"id"`
	Listen string `json:"listen"` // HOST:PORT; port 0 takes a free one
	Hooks  []Hook `json:"hooks"`
}

// A Hook is one path, POST /hooks/<id>, with a secret of its own.
type Hook struct {
	ID        string `json:"id"`
	SecretEnv string `json:"secretEnv"`          // the name its secret is found under, never the secret
	AgentID   string `json:"agentId,omitempty"`  // "": the agent that the hook's address maps to
	Template  string `json:"template,omitempty"` // Go text/template over the payload
	Callback  string `json:"callback,omitempty"` // answers are posted here; "": no answers
}

var hookID = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Validate reports everything that is wrong with o, as one error of a line each.
func (o Options) Validate() error {
	var wrong []error
	if o.ID == "" {
		wrong = append(wrong, errors.New("connector without an id"))
	}
	if !connectors.Listens(o.Listen) {
		wrong = append(wrong, fmt.Errorf("listen: found %q, want HOST:PORT such as 127.0.0.1:8787", o.Listen))
	}
	if len(o.Hooks) == 0 {
		wrong = append(wrong, errors.New("hooks: missing, so nothing can be received"))
	}

	for i, h := range o.Hooks {
		twice := slices.ContainsFunc(o.Hooks[:i], func(other Hook) bool { return other.ID == h.ID })
		if twice {
			wrong = append(wrong, fmt.Errorf("hooks[%d]: duplicate id %q", i, h.ID))
		}
		if err := h.validate(); err != nil {
			wrong = append(wrong, fmt.Errorf("hooks[%d] %q: %w", i, h.ID, err))
		}
	}

	return errors.Join(wrong...)
}

func (h Hook) validate() error {
	var wrong []error
	if !hookID.MatchString(h.ID) {
		wrong = append(wrong, errors.New("id: want 1 to 64 characters of a-z A-Z 0-9 . _ -, a letter or digit first"))
	}
	if h.SecretEnv == "" {
		wrong = append(wrong, errors.New("secretEnv: missing; a hook without a secret would accept anyone"))
	}
	if _, err := parseTemplate(h.Template); err != nil {
		wrong = append(wrong, err)
	}
	if err := validateCallback(h.Callback); err != nil {
		wrong = append(wrong, err)
	}

	return errors.Join(wrong...)
}

// validateCallback keeps the address out of its errors: it may hold a token.
func validateCallback(address string) error {
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "":
		return errors.New("callback: want an http:// or https:// address")
	case u.User != nil:
		return errors.New("callback: contains a user name or password; the receiver checks the signature instead")
	}

	return nil
}
