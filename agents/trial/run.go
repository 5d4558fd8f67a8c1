package trial

import (
	"encoding/json"
	"time"
)

// A Run is what an agent did in a test until a message was answered.
type Run struct {
	Answer string  // to the newest message
	Reason string  // of the end of the newest turn: see record.ReasonDone
	Error  string  // of that turn
	Calls  []Call  // of tools, by the agent and those that it started, in their order
	Asked  []Asked // approval requests
	Usage

	// File reads a file of the workspace; fs.ErrNotExist: there is none.
	File func(path string) ([]byte, error) `json:"-"`
	// Judge asks a model how well an answer fits a rubric; nil: no model can be asked.
	Judge func(rubric, question, answer string) (score float64, why string, err error) `json:"-"`
	// Question is what was said last, for the judge.
	Question string
}

// Usage is what a run took so far.
type Usage struct {
	Cost   float64       `json:"cost"`   // US dollars
	Rounds int           `json:"rounds"` // model calls
	Input  int64         `json:"input"`  // tokens
	Output int64         `json:"output"` // tokens
	Took   time.Duration `json:"-"`
}

// A Call is a call of a tool.
type Call struct {
	Agent     string // handle
	Tool      string
	Arguments json.RawMessage
	Status    string // of its result: see record.StatusOK
}

// Asked is one request for an approval.
type Asked struct{ Permission, Answer string }
