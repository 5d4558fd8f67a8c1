package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"daycare/engine/beneath"
	"daycare/engine/finding"
	"daycare/engine/form"
	"daycare/engine/permission"
)

// A server can ask the user something in the middle of a call (elicitation). No call waits for
// that: the server gets "cancel", the question is kept in a file, and the model reads it. When
// the user has approved an answer, mcp_answer makes the same call again, and the same question
// gets that answer. So a question survives a kill, and its answer is approved wherever
// approvals are.

// A Question is what a server asked in a call, with that call.
type Question struct {
	ID        string          `json:"id" check:"required"` // of all else
	Agent     string          `json:"agent" check:"required"`
	Server    string          `json:"server" check:"required"`
	Tool      string          `json:"tool" check:"required"`
	Arguments json.RawMessage `json:"arguments"`
	Message   string          `json:"message"` // in the server's words
	Schema    json.RawMessage `json:"schema,omitempty"`
	URL       string          `json:"url,omitempty"` // to be opened; then there is no schema
}

// Questions is the file of those without an answer, newest last.
type Questions struct {
	Questions []Question `json:"questions"`
}

// QuestionsName is the file, beside the folder of the catalogues.
const QuestionsName = "mcp.questions.json"

// QuestionsType is the form of the file.
func QuestionsType() reflect.Type { return reflect.TypeFor[Questions]() }

const (
	// maxQuestions is how many are kept.
	maxQuestions = 50
	// maxQuestion bounds one, in bytes.
	maxQuestion = 32 << 10
	// maxAsked is how often a server can ask in one call.
	maxAsked = 5
)

var questionsKind = form.Kind{ID: "mcp-questions", Max: maxQuestions * (maxQuestion + 4096),
	Remedy: "Remove the file: agents then make their calls again, and are asked again."}

// CheckQuestions finds what is wrong in the content of the file.
func CheckQuestions(path string, content []byte) ([]finding.Finding, error) {
	_, found := parseQuestions(path, content)
	return found, nil
}

func parseQuestions(path string, content []byte) (Questions, []finding.Finding) {
	f := questionsKind.JSON(path, content)
	var q Questions
	f.Read(&q)
	if f.Failed() {
		return Questions{}, f.Found
	}

	return q, f.Found
}

// identity is the ID of a question. What an address has behind its path is new each time.
func (q Question) identity() string {
	where := q.URL
	if u, err := url.Parse(q.URL); err == nil {
		where = u.Scheme + "://" + u.Host + u.Path
	}
	h := sha256.New()
	for _, part := range []string{q.Agent, q.Server, q.Tool, string(q.Arguments), q.Message, string(q.Schema), where} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}

	return hex.EncodeToString(h.Sum(nil))[:12]
}

// A ledger keeps questions in their file.
type ledger struct {
	path  string
	write func(path string, data []byte) error // nil: nothing is kept
	mu    sync.Mutex
}

func (l *ledger) read() (Questions, error) {
	data, _, err := beneath.Own(l.path, int64(questionsKind.Max))
	if errors.Is(err, fs.ErrNotExist) {
		return Questions{}, nil
	}
	if err != nil {
		return Questions{}, fmt.Errorf("read questions of MCP servers: %w", err)
	}
	q, found := parseQuestions(l.path, data)
	return q, finding.Join(found)
}

// find is a question that an agent was asked.
func (l *ledger) find(agent, id string) (Question, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, err := l.read()
	if err != nil {
		return Question{}, err
	}
	for _, q := range all.Questions {
		if q.ID == id && q.Agent == agent {
			return q, nil
		}
	}

	return Question{}, fmt.Errorf("there is no open question %q; call the tool again, and answer what it asks then", id)
}

// keep puts a question at the end, or takes one with that id away where without is true.
func (l *ledger) keep(q Question, without bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.write == nil {
		return errors.New("this process keeps no questions")
	}
	all, err := l.read()
	if err != nil {
		return err
	}
	n := len(all.Questions)
	all.Questions = slices.DeleteFunc(all.Questions, func(old Question) bool { return old.ID == q.ID })
	if without && len(all.Questions) == n {
		return nil
	}
	if !without {
		all.Questions = append(all.Questions, q)
	}
	all.Questions = all.Questions[max(0, len(all.Questions)-maxQuestions):]
	data, err := json.MarshalIndent(all, "", "  ")
	if err == nil {
		err = l.write(l.path, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("keep the question of an MCP server: %w", err)
	}

	return nil
}

// A calling is one call under way, with what the server asks in it.
type calling struct {
	of    Question // the call
	given *given   // an approved answer; nil: none
	end   context.CancelFunc

	mu   sync.Mutex
	open *Question // the first without an answer
	n    int       // questions
	why  string    // what is wrong with a question; "": nothing
}

// A given answer is for the question that it fits.
type given struct {
	fits    func(q Question) bool
	action  string
	content map[string]any
}

type callingKey struct{}

// callings are the calls of a server that are under way.
type callings struct {
	mu sync.Mutex
	by map[*sdk.ClientSession][]*calling
}

// begin has questions of a session be those of a call until end is called.
func (cs *callings) begin(session *sdk.ClientSession, c *calling) (end func()) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.by == nil {
		cs.by = map[*sdk.ClientSession][]*calling{}
	}
	cs.by[session] = append(cs.by[session], c)
	return func() {
		cs.mu.Lock()
		defer cs.mu.Unlock()
		cs.by[session] = slices.DeleteFunc(cs.by[session], func(other *calling) bool { return other == c })
		if len(cs.by[session]) == 0 {
			delete(cs.by, session)
		}
	}
}

// of is the call in which a session asks: that of the context, or the only one under way.
func (cs *callings) of(ctx context.Context, session *sdk.ClientSession) *calling {
	if c, ok := ctx.Value(callingKey{}).(*calling); ok {
		return c
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if len(cs.by[session]) != 1 {
		return nil
	}

	return cs.by[session][0]
}

// asked is a question of the server.
func (cs *callings) asked(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	if c := cs.of(ctx, r.Session); c != nil {
		return c.asked(r.Params)
	}
	return &sdk.ElicitResult{Action: "cancel"}, nil // nobody knows in which call
}

// asked answers a question, or notes it.
func (c *calling) asked(p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.of
	q.Message, q.URL = p.Message, p.URL
	if q.Schema = json.RawMessage(`{"type":"object"}`); p.RequestedSchema != nil {
		q.Schema, _ = json.Marshal(p.RequestedSchema) // it came as JSON
	}
	if q.URL != "" {
		q.Schema = nil
	}
	q.ID = q.identity()
	if c.n++; c.n > maxAsked {
		c.why = fmt.Sprintf("it asked more than %d times in one call", maxAsked)
		c.end()
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "too many questions in one call"}
	}
	if len(q.Message)+len(q.Schema)+len(q.URL)+len(q.Arguments) > maxQuestion {
		c.why = fmt.Sprintf("its question is over %d bytes", maxQuestion)
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: c.why}
	}
	if u, err := url.Parse(q.URL); q.URL != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "") {
		c.why = "it asked to open what is not a web address"
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: c.why}
	}
	if c.given != nil && c.given.fits(q) {
		return &sdk.ElicitResult{Action: c.given.action, Content: c.given.content}, nil
	}
	if c.open == nil {
		c.open = &q
	}

	return &sdk.ElicitResult{Action: "cancel"}, nil
}

// wanted notes the addresses that a server wants opened before it takes the call at all.
func (c *calling) wanted(err error) {
	var refused *jsonrpc.Error
	if !errors.As(err, &refused) || refused.Code != sdk.CodeURLElicitationRequired {
		return
	}
	var data struct {
		Elicitations []*sdk.ElicitParams `json:"elicitations"`
	}
	if json.Unmarshal(refused.Data, &data) != nil {
		return
	}
	for _, p := range data.Elicitations {
		if p != nil && p.URL != "" {
			c.asked(p) // no answer reaches the server: the call is made again
			return
		}
	}
}

// left is the question without an answer, and what is wrong with what was asked; nil, "": nothing
// was asked.
func (c *calling) left() (*Question, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open, c.why
}

// told is a question as the model reads it.
func (q Question) told() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Question %s: not done yet, the MCP server %s asks the user first, in its words: %s\n",
		q.ID, q.Server, cleaned(q.Message, maxDescription))
	if q.URL != "" {
		fmt.Fprintf(&b, "The user, and nobody else, should open this address: %s\nGive it to the user, then call %s with "+
			`{"question":%q}.`, permission.VisibleLine(q.URL), AnswerTool, q.ID)
	} else {
		fmt.Fprintf(&b, "Fields of the answer: %s\nAsk the user for what you do not know, then call %s with "+
			`{"question":%q,"content":{…}}.`, Definition{Schema: q.Schema}.shown(), AnswerTool, q.ID)
	}
	fmt.Fprintf(&b, " The user approves what is sent, and the call is made again. To decline: {\"question\":%q,\"decline\":true}.", q.ID)
	return b.String()
}

// newLedger is the ledger of a pool.
func newLedger(o Options) *ledger {
	return &ledger{path: filepath.Join(filepath.Dir(o.Dir), QuestionsName), write: o.WriteFile}
}
