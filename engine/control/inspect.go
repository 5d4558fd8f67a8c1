package control

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"time"

	"daycare/engine/event"
	"daycare/engine/finding"
)

// Inspector looks at files as the commands do that work without a daemon: each route answers what
// the command prints with --json.
type Inspector interface {
	// Trace is everything that led from a message to its reply. Errors: fault.NoTrace.
	Trace(ctx context.Context, id string) (json.RawMessage, error)
	// Examine looks for what is wrong in the workspace and around it.
	Examine(ctx context.Context) (Checkup, error)
	// Treat repairs what can be repaired without losing data, of the findings with these ids, and
	// looks again; nil: of all.
	Treat(ctx context.Context, ids []string) (Checkup, error)
	// Validate checks the text of a file by its path in .daycare. Errors: *Invalid.
	Validate(ctx context.Context, name string, text []byte) ([]finding.Finding, error)
	// Schema is the JSON Schema of a kind of file. Errors: *Invalid.
	Schema(name string) (json.RawMessage, error)
	// SharedFiles are the files that people edit and that belong to no agent. ReadShared and
	// WriteShared are as those of Folders, by the path in .daycare. Errors: fault.NotEditable,
	// *Conflict, *Unfit.
	SharedFiles(ctx context.Context) ([]SharedFile, error)
	ReadShared(ctx context.Context, name string) (content []byte, hash string, err error)
	WriteShared(ctx context.Context, name string, content []byte, hash string) (newHash string, err error)
	// TestConnector and TestProvider ask a platform, or a model service, whether it can be used. An
	// answer that it cannot is not an error. Errors: *Invalid.
	TestConnector(ctx context.Context, id string) (json.RawMessage, error)
	TestProvider(ctx context.Context, id string) (json.RawMessage, error)
	// Size is what the model of an agent is sent, in tokens; null: it was never asked anything.
	Size(ctx context.Context, id string) (json.RawMessage, error)
	// Log calls line with what the log has, the oldest first; with Follow also with what is added,
	// until ctx ends.
	Log(ctx context.Context, q LogQuery, line func(raw []byte) error) error
}

// A Checkup is what daycare doctor found.
type Checkup struct {
	Healthy  bool              `json:"healthy"` // neither errors nor warnings
	Running  bool              `json:"running"`
	Agents   int               `json:"agents"`
	Findings []Ailment         `json:"findings"`
	Fixed    []finding.Finding `json:"fixed,omitempty"`
}

// An Ailment is a finding of a Checkup.
type Ailment struct {
	finding.Finding
	Fixable bool `json:"fixable,omitempty"` // now: some only with the daemon stopped
}

// A SharedFile is a file that people edit and that belongs to no agent.
type SharedFile struct {
	Name      string    `json:"name"`             // path in .daycare
	Schema    string    `json:"schema,omitempty"` // name of its schema
	Bytes     int64     `json:"bytes"`
	ChangedAt time.Time `json:"changedAt"`
}

// A LogQuery is what is wanted of the log.
type LogQuery struct {
	Agent  string    // its handle, name or id; "": all
	Level  string    // debug, info, warn or error: this and above
	Since  time.Time // zero: from the beginning
	Lines  int       // at most so many, the newest; 0: all
	Follow bool
}

type (
	traceIn struct {
		Ref string `path:"ref"`
	}
	treatBody struct {
		Findings []string `json:"findings,omitempty"` // ids of findings; absent: all
	}
	validateBody struct {
		Name string `json:"name"` // path in .daycare: settings.yaml, cron/mail/TASK.md
		Text string `json:"text"`
	}
	findingsBody struct {
		Findings []finding.Finding `json:"findings"`
	}
	sharedBody struct {
		Files []SharedFile `json:"files"`
	}
	sharedIn struct {
		Name string `path:"name"`
	}
	sharedWriteIn struct {
		Name  string    `path:"name"`
		Match string    `header:"If-Match"`
		Body  io.Reader `body:"text/plain"`
	}
	schemaIn struct {
		Name string `path:"name"`
	}
	logIn struct {
		Agent  string    `query:"agent"`
		Level  string    `query:"level" default:"debug" allow:"debug|info|warn|error"`
		Since  time.Time `query:"since"`
		Limit  int64     `query:"limit" default:"200" min:"1" max:"5000"`
		Follow bool      `query:"follow"`
	}
	linesBody struct {
		Lines []json.RawMessage `json:"lines"`
	}
)

// inspections serve an Inspector.
type inspections struct {
	api *api
	at  Inspector
}

func inspectRows(a *api, n inspections) []row {
	return []row{on(a, traceOp, n.trace), on(a, examine, n.examine), on(a, treat, n.treat), on(a, validate, n.validate),
		on(a, schemaOf, n.schema), stream(a, logOp, n.log),
		on(a, sharedFiles, n.shared), stream(a, readShared, n.readShared), stream(a, writeShared, n.writeShared),
		on(a, testConnector, n.testConnector), on(a, testProvider, n.testProvider), on(a, sizeOf, n.size)}
}

func (n inspections) trace(ctx context.Context, in traceIn) (json.RawMessage, error) {
	return n.at.Trace(ctx, in.Ref)
}

func (n inspections) examine(ctx context.Context, _ nothing) (Checkup, error) {
	return n.at.Examine(ctx)
}

func (n inspections) treat(ctx context.Context, in aBody[treatBody]) (Checkup, error) {
	return n.at.Treat(ctx, in.Body.Findings)
}

func (n inspections) validate(ctx context.Context, in aBody[validateBody]) (findingsBody, error) {
	list, err := n.at.Validate(ctx, in.Body.Name, []byte(in.Body.Text))
	return findingsBody{some(list)}, err
}

func (n inspections) schema(_ context.Context, in schemaIn) (json.RawMessage, error) {
	return n.at.Schema(in.Name)
}

func (n inspections) testConnector(ctx context.Context, in sharedIn) (json.RawMessage, error) {
	return n.at.TestConnector(ctx, in.Name)
}

func (n inspections) testProvider(ctx context.Context, in sharedIn) (json.RawMessage, error) {
	return n.at.TestProvider(ctx, in.Name)
}

func (n inspections) shared(ctx context.Context, _ nothing) (sharedBody, error) {
	list, err := n.at.SharedFiles(ctx)
	return sharedBody{some(list)}, err
}

func (n inspections) readShared(w http.ResponseWriter, r *http.Request, in sharedIn) {
	content, hash, err := n.at.ReadShared(r.Context(), in.Name)
	n.api.sendFile(w, r, content, hash, err)
}

func (n inspections) writeShared(w http.ResponseWriter, r *http.Request, in sharedWriteIn) {
	n.api.takeFile(w, r, in.Match, func(content []byte, hash string) (string, error) {
		return n.at.WriteShared(r.Context(), in.Name, content, hash)
	})
}

func (n inspections) size(ctx context.Context, in anAgent) (json.RawMessage, error) {
	return n.at.Size(ctx, in.ID)
}

// logLine is the type of event of a line of the log.
const logLine event.Type = "log"

// log answers with lines, or with a stream of events of which each is one.
func (n inspections) log(w http.ResponseWriter, r *http.Request, in logIn) {
	q := LogQuery{Agent: in.Agent, Level: in.Level, Since: in.Since, Lines: int(in.Limit), Follow: in.Follow}
	if !q.Follow {
		lines := []json.RawMessage{}
		err := n.at.Log(r.Context(), q, func(raw []byte) error {
			lines = append(lines, slices.Clone(raw))
			return nil
		})
		if err != nil {
			n.api.fail(w, r, err)
			return
		}
		n.api.send(w, r, http.StatusOK, linesBody{lines})
		return
	}

	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	lines, done := make(chan json.RawMessage), make(chan error, 1)
	go func() {
		done <- n.at.Log(ctx, q, func(raw []byte) error {
			select {
			case lines <- slices.Clone(raw):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	defer func() { cancel(); <-done }()
	select { // what cannot be followed is an error, not a stream
	case err := <-done:
		done <- err
		if err != nil {
			n.api.fail(w, r, err)
			return
		}
	case first := <-lines:
		n.followLog(w, ctx, first, lines, done)
		return
	case <-time.After(logBegins):
	}
	n.followLog(w, ctx, nil, lines, done)
}

// logBegins is how long the first line is waited for before a stream begins without one.
const logBegins = 100 * time.Millisecond

func (n inspections) followLog(w http.ResponseWriter, ctx context.Context, first json.RawMessage, lines <-chan json.RawMessage,
	done chan error) {
	out, err := startSSE(w)
	if err == nil && first != nil {
		err = out.value("", logLine, first)
	}
	if err == nil {
		err = out.flush()
	}
	beat := time.NewTicker(keepAlive)
	defer beat.Stop()
	for err == nil {
		select {
		case line := <-lines:
			err = out.send("", logLine, line)
		case <-beat.C:
			err = out.alive()
		case err := <-done:
			done <- err
			return
		case <-closingOf(ctx):
			return
		case <-ctx.Done():
			return
		}
	}
}
