package permission

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/form"
)

// An Owner is the user who can answer a request in a chat.
type Owner struct {
	Connector string `json:"connector"`
	UserID    string `json:"userId"`
}

// A Pending is a request that waits for an answer, or was just answered.
type Pending struct {
	Token     string // cuid2
	Agent     string // who asks
	Owner     Owner
	Request   Request
	SHA256    string // Request.SHA256(Agent): what an answer is bound to
	AskedAt   time.Time
	ExpiresAt time.Time

	Decision  Decision // "" while it waits
	DecidedBy string
	DecidedAt time.Time
}

// CodeLength is how many characters of a token a user has to type at least to answer a request.
const CodeLength = 6

// DedupeKey is the dedupe key of the decision in the inbox of the agent. Every user interface posts
// with the same key, so the first answer wins.
func (p Pending) DedupeKey() string { return "perm:" + p.Token }

// file is a Pending on disk. Members that a user may set come last.
type file struct {
	Token      string      `json:"token" check:"required"`
	AgentID    string      `json:"agentId" check:"required"`
	Owner      Owner       `json:"owner"`
	Permission string      `json:"permission"`
	Reason     string      `json:"reason"`
	Request    fileDetail  `json:"request"`
	Prefix     string      `json:"prefix,omitempty"`
	Untrusted  []string    `json:"untrusted,omitempty"`
	AskAlways  bool        `json:"askAlways,omitempty"`
	Gate       bool        `json:"gate,omitempty"`
	SHA256     string      `json:"sha256"`
	AskedAt    disk.Stamp  `json:"askedAt"`
	ExpiresAt  disk.Stamp  `json:"expiresAt"`
	Decision   *Decision   `json:"decision" allow:"once|always|prefix|deny|expired|freed"`
	DecidedBy  string      `json:"decidedBy,omitempty"`
	DecidedAt  *disk.Stamp `json:"decidedAt,omitempty"`
}

// FileType is the type of a request file, for its JSON Schema.
func FileType() reflect.Type { return reflect.TypeFor[file]() }

// fileDetail adds to the request where and how it would run, without which the hash
// could not be checked.
type fileDetail struct {
	Detail
	Workdir  string   `json:"workdir,omitempty"`
	Sandbox  string   `json:"sandbox,omitempty"`
	Programs []string `json:"programs,omitempty"`
	Scripts  []Script `json:"scripts,omitempty"`
	Also     []string `json:"also,omitempty"`
}

// request is the Request that a file is about.
func (f file) request() Request {
	d := f.Request
	return Request{Tag: f.Permission, Reason: f.Reason, Detail: d.Detail, Workdir: d.Workdir, Sandbox: d.Sandbox, Programs: d.Programs,
		Scripts: d.Scripts, Also: d.Also, Prefix: f.Prefix, Sources: f.Untrusted, AskAlways: f.AskAlways, Gate: f.Gate}
}

// encode writes p as one JSON object: on one line for the log, with an indent for users.
func encode(p Pending, indent string) ([]byte, error) {
	r := p.Request
	f := file{
		Token: p.Token, AgentID: p.Agent, Owner: p.Owner, Permission: r.Tag, Reason: r.Reason,
		Request: fileDetail{r.Detail, r.Workdir, r.Sandbox, r.Programs, r.Scripts, r.Also},
		Prefix:  r.Prefix, Untrusted: r.Sources, AskAlways: r.AskAlways, Gate: r.Gate,
		SHA256: p.SHA256, AskedAt: disk.StampOf(p.AskedAt), ExpiresAt: disk.StampOf(p.ExpiresAt),
	}
	if p.Decision != "" {
		f.Decision, f.DecidedBy = &p.Decision, p.DecidedBy
	}
	if !p.DecidedAt.IsZero() {
		at := disk.StampOf(p.DecidedAt)
		f.DecidedAt = &at
	}

	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // users read commands here
	enc.SetIndent("", indent)
	if err := enc.Encode(f); err != nil {
		return nil, fmt.Errorf("encode request %s: %w", p.Token, err)
	}

	return b.Bytes(), nil
}

// decisions are the words that may be in a file.
var decisions = []Decision{Once, Always, Prefix, Deny, Expired, Freed}

// kind is how requests are read.
var kind = form.Kind{ID: "permission", Unknown: finding.Info, Remedy: "answer with `daycare permissions`, or remove the file",
	IDs: map[string]string{"syntax": "file", "wrong-type": "file", "bad-value": "file", "missing": "file"}}

// decode reads a request. An error is a finding.Finding for the file name.
func decode(name string, data []byte) (Pending, error) {
	var f file
	if !form.Clean(data, &f) {
		f = file{}
		in := kind.JSON(name, data)
		if in.Read(&f); in.Failed() {
			return Pending{}, finding.Join(in.Found)
		}
	}

	p := Pending{Token: f.Token, Agent: f.AgentID, Owner: f.Owner, SHA256: f.SHA256,
		Request: f.request(), AskedAt: f.AskedAt.Time, ExpiresAt: f.ExpiresAt.Time, DecidedBy: f.DecidedBy}
	if f.Decision != nil {
		p.Decision = *f.Decision
	}
	if f.DecidedAt != nil {
		p.DecidedAt = f.DecidedAt.Time
	}

	wrong := ""
	switch {
	case p.Decision == Prefix && p.Request.Prefix == "":
		wrong = fmt.Sprintf("decision is %q, which does not apply to this request; allowed: once, always, deny", p.Decision)
	case p.SHA256 != p.Request.SHA256(p.Agent):
		wrong = "sha256 does not match the request: more than the decision was changed"
	default:
		return p, nil
	}

	in := kind.JSON(name, data)
	in.Tell(finding.Error, "file", "", wrong, "")
	return Pending{}, finding.Join(in.Found)
}

// sameQuestion reports whether b asks what a asks; how it is answered is left out.
func sameQuestion(a, b Pending) bool {
	return a.Token == b.Token && a.Agent == b.Agent && a.Owner == b.Owner && reflect.DeepEqual(a.Request, b.Request) &&
		a.SHA256 == b.SHA256 && a.AskedAt.Equal(b.AskedAt) && a.ExpiresAt.Equal(b.ExpiresAt)
}
