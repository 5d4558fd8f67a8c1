package acp

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	acp "github.com/coder/acp-go-sdk"

	"daycare/engine/control"
	"daycare/engine/cuid"
	"daycare/engine/event"
	"daycare/engine/permission"
	"daycare/engine/record"
)

// connector is the connector of agents that are sessions of an editor.
const connector = "acp"

// A session is a conversation with one agent. mu guards all below it.
type session struct {
	id     string // and channel of the agent
	folder string // where the editor works, relative to the workspace; "" is the workspace
	door   *Door
	ctx    context.Context
	end    context.CancelFunc

	mu     sync.Mutex
	agent  string // id; "" before the first prompt
	tell   *teller
	prompt *prompt // in progress; nil: none
	ready  chan struct{}
	asked  askedRequests
}

// askedRequests are the requests for permission that the editor was shown.
type askedRequests struct {
	looks sync.Mutex                    // held over a look at those that wait: after a newer list no older one counts
	shown map[string]context.CancelFunc // by token; nil: no longer
}

// A prompt is a message of an editor that waits for its answer.
type prompt struct {
	item     string          // "": it was not accepted yet
	due      map[string]bool // tokens of requests that a turn has to follow; true: they were answered
	closed   bool            // its turn has ended
	canceled bool
	abandon  context.CancelFunc // ends what is done before it is sent
	reason   string             // of the newest turn's end
	finish   record.Finish
	text     string // why there is no answer
	err      error
	done     chan struct{}
	once     sync.Once
}

func (p *prompt) finished() { p.once.Do(func() { close(p.done) }) }

// record follows how far the prompt is. It is over when its turn has ended and so have those that
// follow from the answers to what that turn asked for.
func (p *prompt) record(e *record.Entry) {
	switch r := e.Rec.(type) {
	case *record.Assistant:
		p.finish = r.Finish
		if r.Finish == record.FinishError {
			p.text = r.Text
		}
	case *record.Permission:
		p.answered(r)
	case *record.TurnEnd:
		p.closed = p.closed || slices.Contains(r.Items, p.item)
		if p.closed {
			p.reason = r.Reason
			p.text = cmp.Or(p.text, r.Error)
		}
		for token, decided := range p.due {
			if decided {
				delete(p.due, token)
			}
		}
	}
}

func (p *prompt) answered(r *record.Permission) {
	words, allowed := answerIn(r)
	_, budget := permission.BudgetOf(r.Tag)
	switch _, waits := p.due[r.Token]; {
	case r.Event == "asked":
		p.due[r.Token] = false
	case waits && words != "" && budget && !allowed:
		delete(p.due, r.Token) // it stops, and says no more
	case waits && words != "":
		p.due[r.Token] = true
	}
}

// works reports whether a turn works on it, or will.
func (p *prompt) works() bool {
	for _, decided := range p.due {
		if decided {
			return true
		}
	}

	return !p.closed
}

func (p *prompt) over() bool { return p.closed && (len(p.due) == 0 || p.canceled) }

// result is what the editor gets at the end.
func (p *prompt) result() (acp.PromptResponse, error) {
	stop := func(r acp.StopReason) (acp.PromptResponse, error) { return acp.PromptResponse{StopReason: r}, nil }
	switch {
	case p.canceled || p.reason == record.ReasonCanceled:
		return stop(acp.StopReasonCancelled)
	case p.err != nil:
		return acp.PromptResponse{}, p.err
	case p.reason == record.ReasonLimit, p.reason == record.ReasonLoop:
		return stop(acp.StopReasonMaxTurnRequests)
	case p.reason == record.ReasonBudget:
		return acp.PromptResponse{}, problem(codeInternal, "the budget is used up: raise it with daycare permissions or in settings.yaml")
	case p.reason == record.ReasonError, p.reason == record.ReasonPoison:
		return acp.PromptResponse{}, problem(codeInternal, "%s", cmp.Or(p.text, "the turn ended with an error; daycare logs has more"))
	case p.finish == record.FinishMaxTokens:
		return stop(acp.StopReasonMaxTokens)
	}

	return stop(acp.StopReasonEndTurn)
}

// begin makes a prompt the one in progress.
func (s *session) begin(abandon context.CancelFunc) *prompt {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prompt = &prompt{due: map[string]bool{}, abandon: abandon, done: make(chan struct{}), canceled: s.door.wire.canceled(s.id)}
	for token, cancel := range s.asked.shown { // what was left open is asked again
		if cancel == nil {
			delete(s.asked.shown, token)
		}
	}

	return s.prompt
}

// withdrawn reports whether a prompt was canceled.
func (s *session) withdrawn(p *prompt) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.canceled
}

func (s *session) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prompt = nil
}

// ensure makes the agent, and follows it from now on.
func (s *session) ensure(ctx context.Context) (agent string, err error) {
	s.mu.Lock()
	agent = s.agent
	s.mu.Unlock()
	if agent == "" {
		err := s.door.link.with(ctx, func(c *control.Client) error {
			a, err := c.Create(ctx, control.NewAgent{Type: "user", Connector: connector, ChannelID: s.id})
			agent = a.ID
			return err
		})
		if err != nil {
			return "", explain("create the session's agent", err)
		}
		s.mu.Lock()
		s.agent = agent
		s.mu.Unlock()
	}

	return agent, s.followed(ctx)
}

// post puts a message into the agent's inbox: once, however often it has to try.
func (s *session) post(ctx context.Context, p *prompt, m control.Message, key string) error {
	agent, err := s.ensure(ctx)
	if err != nil {
		return err
	}
	m.Connector, m.ChannelID = connector, s.id
	m.Dedupe = connector + ":" + s.id + ":" + cmp.Or(key, cuid.New())
	err = s.door.link.with(ctx, func(c *control.Client) error {
		s.mu.Lock() // its records are not told before it is known whose they are
		defer s.mu.Unlock()
		if p.canceled {
			p.finished()
			return nil
		}
		// A cancel may not leave open whether the message arrived: then its turn could not be stopped.
		receipt, err := c.Send(context.WithoutCancel(ctx), agent, m)
		if err != nil {
			return err
		}

		p.item = receipt.Item
		s.tell.mine[p.item] = true
		if receipt.Duplicate {
			s.door.wg.Go(func() { s.await(p, m) })
		}
		s.door.wg.Go(func() { questions{s}.look(s.ctx, c, false) }) // what was left open is asked again
		return nil
	})

	return explain("send the prompt", err)
}

// await ends a prompt that was sent before, by another process perhaps: how it ended may lie
// further back than what is followed.
func (s *session) await(p *prompt, m control.Message) {
	_ = s.door.link.with(s.ctx, func(c *control.Client) error {
		o, err := c.Stream(s.ctx, s.agentID(), m, nil)
		if err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if !p.closed {
			p.closed, p.reason, p.text = true, o.Reason, cmp.Or(o.Error, o.Text)
			s.settle()
		}
		return nil
	})
}

func (s *session) agentID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.agent
}

// settle ends the prompt if it is over. s.mu is held.
func (s *session) settle() {
	if s.prompt != nil && s.prompt.over() {
		s.prompt.finished()
	}
}

// wait waits for the end of a prompt. Who withdraws the request cancels it.
func (s *session) wait(ctx context.Context, p *prompt) (acp.PromptResponse, error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		if s.door.left() {
			return acp.PromptResponse{}, problem(codeInternal, "the connection ended; the agent continues")
		}
		s.cancel(p)(context.WithoutCancel(ctx))
		select {
		case <-p.done:
		case <-s.door.gone():
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()

	return p.result()
}

// current is the prompt in progress; nil: none.
func (s *session) current() *prompt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.prompt
}

// cancel marks a prompt as canceled, so that it is not sent if it was not yet, and returns what stops it where it was. What
// its agent asked for stays open for others to answer.
func (s *session) cancel(p *prompt) (stop func(context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.canceled {
		return func(context.Context) {}
	}

	p.canceled = true
	p.abandon()
	for token, withdraw := range s.asked.shown {
		if withdraw != nil {
			withdraw()
			s.asked.shown[token] = nil // at once: the next prompt may begin before the editor answers
		}
	}
	s.settle()

	agent, item, works := s.agent, p.item, p.item != "" && p.works()
	if p.closed { // a turn may follow from an answer
		item = ""
	}

	return func(ctx context.Context) {
		if works && s.stop(ctx, agent, item) {
			p.finished()
		}
	}
}

// stop takes an item back that waits, or ends the turn that works on it; "": the turn in progress. over: no turn will say
// that it has ended.
func (s *session) stop(ctx context.Context, agent, item string) (over bool) {
	c, err := s.door.link.connected(ctx)
	if err == nil {
		if item != "" && c.Drop(ctx, agent, item) == nil {
			return true
		}
		_, err = c.Stop(ctx, agent, item)
	}

	return errors.Is(err, control.ErrNotRunning)
}

// fail ends the prompt in progress with an error, and following the agent: the next prompt is followed anew.
func (s *session) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = nil
	if s.prompt != nil {
		s.prompt.err = err
		s.prompt.finished()
	}
}

// titleIn is the first message of a user among records, on one line.
func titleIn(entries []*record.Entry) string {
	for _, e := range entries {
		if u, ok := e.Rec.(*record.User); ok && u.Origin == "" {
			line, _, _ := strings.Cut(strings.TrimSpace(u.Text), "\n")
			if len(line) > maxTitle {
				line = strings.ToValidUTF8(line[:maxTitle], "") + "…"
			}
			return line
		}
	}

	return ""
}

// isOf reports whether an agent is a session.
func isOf(a event.Agent) bool { return a.Connector == connector && a.State != event.Ended }
