package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"daycare/engine/message"
	"daycare/engine/permission"
)

// Replay says what may be done with a call that was started and has no result,
// because the process died in between.
type Replay string

const (
	// ReadOnly tools change nothing outside: they are run again.
	ReadOnly Replay = "read-only"
	// Idempotent tools take the call id as idempotency key: they are run again.
	Idempotent Replay = "idempotent"
	// Once tools must not run twice: their start is recorded before they run,
	// and after a crash the call's result is "interrupted".
	Once Replay = "once"
)

// A Spec is what the model and the runtime know of a tool.
type Spec struct {
	Name        string
	Description string          // for the model: short, what it does and when
	Schema      json.RawMessage // JSON Schema of the arguments, an object
	Replay      Replay
	Writes      bool          // changes files: a profile may ask before it
	Parallel    bool          // may run beside other parallel calls of the same message
	Timeout     time.Duration // 0: the tool bounds itself
	MaxOutput   int           // bytes of a result that the conversation takes; 0: MaxOutput characters
}

// A Tool is one ability. Run must return soon after ctx ends and must not panic
// on any arguments that pass the schema. What went wrong for the model to read
// is a Result with an error status; an error is for what the model cannot mend.
type Tool interface {
	Spec() Spec
	Run(ctx context.Context, call Call) (Result, error)
}

// RequestPermission is the tool by which an agent asks for a right as such.
const RequestPermission = "request_permission"

// Asks is the optional ability of a tool whose calls may need a user's
// approval. The runtime asks for what Needs returns and runs the call only when
// it is granted. nil: nothing to ask.
type Asks interface {
	Needs(call Call) (*permission.Request, error)
}

// Widens is the optional ability of a tool whose calls, once they were allowed and
// succeeded, give the agent a right for the rest of the turn.
type Widens interface {
	// Widens is the tag of the right; "" for none.
	Widens(call Call) (tag string)
}

// Held is the optional ability of a tool that runs arbitrary commands, within bounds that the
// set of the call makes true.
type Held interface {
	// Held reports whether something holds what the call runs.
	Held(call Call) bool
}

// Waits is the optional ability of a tool whose calls wait for an agent of their own. A
// process that dies meanwhile was not killed by the turn that waits.
type Waits interface {
	// AtWork reports whether the agent of a call had work at any time since then.
	AtWork(call Call, since time.Time) bool
}

// A Call is one call of a tool.
type Call struct {
	ID        string // unique over all agents; the idempotency key of the call
	Name      string
	Arguments json.RawMessage // a JSON object that passed the schema
	Agent     string          // id of the calling agent
	Turn      string
	Access    permission.Set // what the agent may do, with WorkingDir
	Approved  string         // tag of the request that a user allowed for this very call; "": it needed none
	Sources   []string       // what the turn has read from outside; none: it speaks for the owner
	Unasked   bool           // the agent has no request_permission, so what it lacks the call itself asks for
	Hops      int            // how many agents the cause of the turn has passed
	Answer
	// Progress, never nil, takes output while the tool runs, for users who watch.
	Progress func(text string)
}

// An Answer is where the answer of a turn goes.
type Answer struct {
	Route   message.Address // zero: to nobody
	Message string          // the platform's id of the message that is answered there; "" for none
}

// A Result is what a call gave.
type Result struct {
	Text   string  // for the model
	Status Status  // "" is OK
	Blocks []Block // images and documents for the model, diffs for users
	Files  []message.File
	// Whole is set when Text is only the head and the tail of a longer output.
	Whole *Whole
	// Source is where text in it came from that does not speak for the owner: a page of the
	// web, another agent's work. "" for none.
	Source string
}

// MaxOutput is how much of one result the conversation takes, unless the tool's Spec
// says otherwise: in characters, of which a tool that bounds its own text should leave
// about 1,000 for what it says beside it.
const MaxOutput = 30_000

// Whole describes an output that its tool shortened, so that a further shortening still names the file with the
// whole output.
type Whole struct {
	Blob   string // the file in the agent's blobs/, named by the SHA-256 of what it holds; "" if the output could not be kept
	Bytes  int64  // length of the output
	Kept   int64  // how many of them the file holds, from the beginning
	Left   int64  // how many of them are missing from Text
	Marker string // the line of Text that says so
}

// Shorten makes the text for which left bytes of the output are missing between head
// and tail, and notes it in w. The file is named as it is in the agent's folder, so that
// a folder which is moved, forked or imported names its own; the model gets the absolute
// path.
func (w *Whole) Shorten(head, tail string, left int64) string {
	where := "they could not be kept"
	switch {
	case w.Blob != "" && w.Kept < w.Bytes:
		where = fmt.Sprintf("the first %d bytes are in blobs/%s", w.Kept, w.Blob)
	case w.Blob != "":
		where = "the whole output is in blobs/" + w.Blob
	}

	w.Left = left
	w.Marker = fmt.Sprintf("\n[… %d of %d bytes left out; %s …]\n", left, w.Bytes, where)

	return head + w.Marker + tail
}

// Status is how a call ended, as the model and history record it.
type Status string

const (
	OK       Status = "ok"
	Failed   Status = "error"
	Denied   Status = "denied"
	TimedOut Status = "timeout"
	Canceled Status = "canceled"
)

// A Block is a part of a result that is not plain text.
type Block struct {
	// Type is "image": File; "document": File is a PDF, Text what a model reads that takes
	// none; "diff": Text is a unified diff, shown to users only.
	Type string
	File *message.File
	Text string
}

// Errorf is a Result that tells the model what went wrong and what to do.
func Errorf(format string, args ...any) Result {
	return Result{Text: fmt.Sprintf(format, args...), Status: Failed}
}
