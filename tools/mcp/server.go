package mcp

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A server is one of the settings, whether it runs or not.
type server struct {
	pool  *Pool
	conf  Server
	log   *stderr
	pages pages
	underWay

	mu      sync.Mutex
	session *session // nil: it does not run
	coming
	failures int // starts and runs that failed since one that worked
	retryAt  time.Time
	lastErr  error
	closed   bool
}

// coming is a start that is wanted.
type coming struct {
	starting chan struct{} // closed when the start under way has ended; nil: there is none
	meeting  bool          // it waits to be seen for the first time, or is
}

// underWay is what belongs to calls that have no result yet.
type underWay struct {
	progress watchers
	calls    callings
}

// A session is one connection to a server.
type session struct {
	*sdk.ClientSession
	live  map[string]string // hashes of the tools that the server says it has, by name
	users int               // calls under way
	idle  *time.Timer
	ended bool // by daycare
}

func newServer(p *Pool, conf Server) *server {
	s := &server{pool: p, conf: conf}
	s.pages = pages{dir: p.options.Dir, id: conf.ID, write: p.options.WriteFile, read: p.options.Read}
	s.log = newStderr(filepath.Join(p.options.Dir, conf.ID+".log"), p.options.WriteDraft)
	return s
}

// use returns the session of a server, which is started if need be. done is to be called when
// the call is over.
func (s *server) use(ctx context.Context) (got *session, done func(), err error) {
	for {
		s.mu.Lock()
		switch {
		case s.closed:
			s.mu.Unlock()
			return nil, nil, errors.New("it was removed from the settings, or daycare is ending")
		case s.session != nil:
			got = s.session
			got.users++
			got.idle.Stop()
			s.mu.Unlock()
			return got, func() { s.release(got) }, nil
		case s.starting == nil && time.Now().Before(s.retryAt):
			err, wait := s.lastErr, time.Until(s.retryAt).Round(time.Second)
			s.mu.Unlock()
			return nil, nil, fmt.Errorf("%w\nit is tried again in %s", err, max(wait, time.Second))
		case s.starting == nil && !s.begin():
			s.mu.Unlock()
			return nil, nil, errors.New("daycare is ending")
		}
		starting := s.starting
		s.mu.Unlock()
		select {
		case <-starting:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// begin starts the server in the background; mu is held.
func (s *server) begin() bool {
	starting := make(chan struct{})
	if !s.pool.begin(func() { s.start(starting) }) {
		return false
	}
	s.starting = starting
	return true
}

// start connects and reads the tools, within startIn.
func (s *server) start(starting chan struct{}) {
	defer close(starting)
	ctx, cancel := context.WithTimeout(s.pool.ctx, startIn)
	defer cancel()
	got, err := s.dial(ctx, nil)
	if err == nil {
		err = s.list(ctx, got)
	}
	if err != nil && ctx.Err() != nil && s.pool.ctx.Err() == nil {
		err = fmt.Errorf("it did not answer within %s of its start", startIn)
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	s.starting = nil
	if err == nil && s.closed {
		err = context.Canceled
	}
	if err != nil {
		if got != nil {
			s.pool.wait.Go(func() { got.Close() })
		}
		s.failed(fmt.Errorf("the MCP server %s could not be started: %w", s.conf.ID, err))
		return
	}
	s.session, s.lastErr = got, nil
	got.idle = time.AfterFunc(idleFor, func() { s.stop(got) })
	s.pool.wait.Go(func() { s.follow(got) })
}

// dial opens a session, with the login of a at a service. Of what a server may ask of a client
// only questions for the user are offered: no sampling, no roots.
func (s *server) dial(ctx context.Context, a *authorizer) (*session, error) {
	transport, err := s.transport(a)
	if err != nil {
		return nil, err
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "daycare", Version: s.pool.options.Version}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{
			Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{}}},
		ElicitationHandler: s.calls.asked,
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			s.pool.begin(s.refresh)
		},
		PromptListChangedHandler: func(context.Context, *sdk.PromptListChangedRequest) {
			s.pool.begin(s.refresh)
		},
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			s.progress.tell(r.Params)
		},
	})
	cs, err := client.Connect(ctx, transport, nil)
	if err != nil {
		return nil, err
	}

	return &session{ClientSession: cs}, nil
}

// ask reads the tools that a server says it has.
func (s *server) ask(ctx context.Context, got *session) (list []Definition, err error) {
	if got.InitializeResult().Capabilities.Tools == nil {
		return nil, nil
	}
	for t, err := range got.Tools(ctx, nil) {
		if err != nil {
			return nil, fmt.Errorf("list its tools: %w", err)
		}
		if len(list) == maxTools {
			return nil, fmt.Errorf("it has more than %d tools", maxTools)
		}
		list = append(list, define(t))
	}

	return list, nil
}

// list reads the tools, and keeps what is new.
func (s *server) list(ctx context.Context, got *session) error {
	list, err := s.ask(ctx, got)
	if err != nil {
		return err
	}
	live := make(map[string]string, len(list))
	for _, d := range list {
		live[d.Name] = d.SHA256
	}
	s.mu.Lock()
	got.live = live
	s.mu.Unlock()
	prompts, err := got.prompts(ctx)
	if err != nil {
		s.log.note(err.Error()) // its tools can be called all the same
	}
	changed, err := s.pages.saw(list, prompts)
	if changed {
		s.pool.changed()
	}

	return err
}

// refresh reads the tools again: the server said that they changed.
func (s *server) refresh() {
	ctx, cancel := context.WithTimeout(s.pool.ctx, startIn)
	defer cancel()
	got, done, err := s.use(ctx)
	if err != nil {
		return
	}
	defer done()
	if err := s.list(ctx, got); err != nil {
		s.log.note("its tools could not be read again: " + err.Error())
	}
}

// follow waits for the end of a session. One that daycare did not end is a failure.
func (s *server) follow(got *session) {
	err := got.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == got {
		s.session = nil
	}
	got.idle.Stop()
	if got.ended || s.closed {
		return
	}
	text := "it ended"
	if err != nil {
		text += ": " + err.Error()
	}
	s.failed(fmt.Errorf("the MCP server %s: %s", s.conf.ID, text))
	s.pool.wait.Go(func() { got.Close() })
}

// failed notes a failure, after each of which the next start waits longer; mu is held.
func (s *server) failed(err error) {
	s.lastErr = err
	s.retryAt = time.Now().Add(min(time.Second<<min(s.failures, 6), time.Minute))
	s.failures++
	s.log.note(err.Error())
}

// works notes that the server answered.
func (s *server) works() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = 0
}

// release ends the use of a session by a call.
func (s *server) release(got *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if got.users--; got.users == 0 && s.session == got {
		got.idle.Reset(idleFor)
	}
}

// stop ends an unused session.
func (s *server) stop(got *session) {
	s.mu.Lock()
	if got.users > 0 || s.session != got {
		s.mu.Unlock()
		return
	}
	got.ended, s.session = true, nil
	s.mu.Unlock()
	got.Close()
}

// drop ends a session that does not answer any more, whoever uses it.
func (s *server) drop(got *session) {
	ctx, cancel := context.WithTimeout(s.pool.ctx, 5*time.Second)
	defer cancel()
	if got.Ping(ctx, nil) == nil {
		return // it only takes long
	}
	got.Close()
}

// close ends the server for good.
func (s *server) close() {
	s.mu.Lock()
	s.closed = true
	got, starting := s.session, s.starting
	if got != nil {
		got.ended = true
	}
	s.mu.Unlock()
	if got != nil {
		got.Close()
	}
	if starting != nil {
		<-starting
	}
	s.log.save()
}

// offered are the tools that agents have of a server. One that was never seen is met in the
// background.
func (s *server) offered() []Definition {
	c, known := s.pages.current()
	if known {
		return c.offered()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.pool.options.Looking && !s.closed && !s.meeting && s.session == nil && s.starting == nil && time.Now().After(s.retryAt) {
		s.meeting = s.pool.begin(s.meet)
	}

	return nil
}

// meet starts a server because nobody knows its tools, when it is its turn. It ends again where
// there are so many that all of them together would be too much.
func (s *server) meet() {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.meeting = false
	}()
	select {
	case s.pool.meets <- struct{}{}:
	case <-s.pool.ctx.Done():
		return
	}
	defer func() { <-s.pool.meets }()
	got, done, err := s.use(s.pool.ctx)
	if err != nil {
		return // use has noted it
	}
	done()
	if len(s.pool.all()) > meetAtOnce {
		s.stop(got)
	}
}

// look notices changes of the server's file.
func (s *server) look() {
	if s.pages.look() {
		s.pool.changed()
	}
}

// is reports what the server says now of a tool: its hash, "" if it does not have it.
func (s *server) is(got *session, tool string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return got.live[tool]
}

func (s *server) state() State {
	st := State{ID: s.conf.ID, Command: s.conf.Command, URL: s.conf.URL, State: "idle"}
	if c, known := s.pages.current(); known {
		added, changed, _ := c.Changes()
		st.Tools, st.Pending = len(c.offered())-len(changed), len(added)+len(changed)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.session != nil:
		st.State = "running"
	case s.starting != nil:
		st.State = "starting"
	case s.lastErr != nil:
		st.State, st.Error = "failed", strings.TrimSpace(s.lastErr.Error())
	}

	return st
}
