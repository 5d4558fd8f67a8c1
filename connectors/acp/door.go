package acp

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"daycare/engine/control"
	"daycare/engine/cuid"
	"daycare/engine/event"
	"daycare/engine/message"
	"daycare/engine/record"
)

// A Door is the agent's side of one connection: the methods that an editor calls.
type Door struct {
	o    Options
	link *link
	wire *wire
	conn *acp.AgentSideConnection
	wg   sync.WaitGroup // of all that a session started

	mu       sync.Mutex
	sessions map[acp.SessionId]*session
}

// gone is closed when the editor's connection has ended.
func (d *Door) gone() <-chan struct{} { return d.conn.Done() }

// left reports whether it has.
func (d *Door) left() bool {
	select {
	case <-d.gone():
		return true
	default:
		return false
	}
}

// Initialize says what daycare can do.
func (d *Door) Initialize(context.Context, acp.InitializeRequest) (acp.InitializeResponse, error) {
	return acp.InitializeResponse{
		ProtocolVersion: acp.ProtocolVersionNumber,
		AgentInfo:       &acp.Implementation{Name: "daycare", Version: d.o.Version},
		AuthMethods:     []acp.AuthMethod{},
		AgentCapabilities: acp.AgentCapabilities{
			LoadSession:        true,
			PromptCapabilities: acp.PromptCapabilities{Image: true, EmbeddedContext: true},
			SessionCapabilities: acp.SessionCapabilities{List: &acp.SessionListCapabilities{},
				Resume: &acp.SessionResumeCapabilities{}, Close: &acp.SessionCloseCapabilities{}},
		},
	}, nil
}

// Authenticate: whoever can open the socket of the daemon is its owner.
func (d *Door) Authenticate(context.Context, acp.AuthenticateRequest) (acp.AuthenticateResponse, error) {
	return acp.AuthenticateResponse{}, problem(codeRefused, "daycare needs no authentication here; model keys: daycare auth set")
}

// NewSession makes a session. Its agent is made by the first prompt, so that one that was only
// opened leaves nothing behind.
func (d *Door) NewSession(ctx context.Context, p acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	folder, err := d.inside(p.Cwd)
	if err != nil {
		return acp.NewSessionResponse{}, err
	}
	d.ignored(p.McpServers)
	if _, err := d.link.connected(ctx); err != nil {
		return acp.NewSessionResponse{}, explain("start the daemon", err)
	}
	s := d.open(cuid.New(), folder)
	d.wire.then(s.id, func() { s.announce(s.ctx) })

	return acp.NewSessionResponse{SessionId: acp.SessionId(s.id), Modes: modes("")}, nil
}

// ignored notes what an editor offers that agents do not use.
func (d *Door) ignored(servers []acp.McpServer) {
	if len(servers) > 0 {
		d.o.Log.Warn("the editor's MCP servers are not used; add those that agents may call with: daycare mcp add", "servers", len(servers))
	}
}

// inside is a folder relative to the workspace, "" the workspace itself.
func (d *Door) inside(cwd string) (string, error) {
	if !filepath.IsAbs(cwd) {
		return "", problem(codeInvalid, "cwd: %q is not an absolute path", cwd)
	}
	real, err := filepath.EvalSymlinks(cwd)
	if err != nil {
		return "", problem(codeInvalid, "cwd: %v", err)
	}
	root, err := filepath.EvalSymlinks(d.o.Workspace)
	if err != nil {
		return "", explain("find the workspace", err)
	}
	rel, err := filepath.Rel(root, real)
	if err != nil || !filepath.IsLocal(rel) {
		return "", problem(codeInvalid, "cwd: %s is not in the workspace %s; start the editor's agent as: daycare --workspace %s acp",
			cwd, d.o.Workspace, cwd)
	}
	if rel == "." {
		rel = ""
	}

	return rel, nil
}

// open makes the session of an id, in place of one that this connection had before.
func (d *Door) open(id, folder string) *session {
	ctx, cancel := context.WithCancel(context.Background())
	s := &session{id: id, folder: folder, door: d, ctx: ctx, end: cancel, asked: askedRequests{shown: map[string]context.CancelFunc{}}}
	s.tell = newTeller(d.o.Workspace, s.say)
	d.mu.Lock()
	defer d.mu.Unlock()
	if old := d.sessions[acp.SessionId(id)]; old != nil {
		old.end()
	}
	d.sessions[acp.SessionId(id)] = s

	return s
}

// say sends an update.
func (s *session) say(u acp.SessionUpdate) {
	_ = s.door.conn.SessionUpdate(context.Background(), acp.SessionNotification{SessionId: acp.SessionId(s.id), Update: u})
}

func (d *Door) session(id acp.SessionId) (*session, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.sessions[id]; s != nil {
		return s, nil
	}

	return nil, problem(codeMissing, "this connection has no session %q: open it with session/new or session/load", id)
}

// LoadSession tells the whole conversation of a session, and continues with it.
func (d *Door) LoadSession(ctx context.Context, p acp.LoadSessionRequest) (acp.LoadSessionResponse, error) {
	d.ignored(p.McpServers)
	m, err := d.take(ctx, p.SessionId, p.Cwd, true)
	return acp.LoadSessionResponse{Modes: m}, err
}

// ResumeSession continues with a session without telling what was said.
func (d *Door) ResumeSession(ctx context.Context, p acp.ResumeSessionRequest) (acp.ResumeSessionResponse, error) {
	d.ignored(p.McpServers)
	m, err := d.take(ctx, p.SessionId, p.Cwd, false)
	return acp.ResumeSessionResponse{Modes: m}, err
}

// take opens a session that there is, and tells its records.
func (d *Door) take(ctx context.Context, id acp.SessionId, cwd string, aloud bool) (*acp.SessionModeState, error) {
	folder, err := d.inside(cwd)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	before := d.sessions[id]
	d.mu.Unlock()
	if before != nil && before.waits() {
		return nil, errBusy()
	}
	var state *acp.SessionModeState
	err = d.link.with(ctx, func(c *control.Client) error {
		a, err := find(ctx, c, string(id))
		if err != nil {
			return err
		}
		entries, err := newer(ctx, c, a.ID, 0)
		if err != nil {
			return err
		}
		set, err := c.Grants(ctx, a.ID)
		if err != nil {
			return err
		}

		state = modes(string(set.Profile))
		s := d.open(string(id), folder)
		s.retell(a.ID, entries, aloud)
		return s.followed(ctx)
	})
	if err != nil {
		return nil, explain("load the session", err)
	}
	s, err := d.session(id)
	if err != nil {
		return nil, err
	}
	s.announce(s.ctx)

	return state, nil
}

// retell tells the records of the conversation, or takes them as told.
func (s *session) retell(agent string, entries []*record.Entry, aloud bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agent = agent
	if !aloud {
		s.tell.say = func(acp.SessionUpdate) {}
	}
	for _, e := range current(entries) {
		s.tell.record(e)
	}
	if n := len(entries); n > 0 {
		s.tell.seq = max(s.tell.seq, entries[n-1].Seq)
	}
	s.tell.say = s.say
}

// find is the agent of a session.
func find(ctx context.Context, c *control.Client, id string) (event.Agent, error) {
	a, err := c.Agent(ctx, connector+":"+id)
	if err == nil && isOf(a) && a.ChannelID == id {
		return a, nil
	}
	if err != nil && !errors.Is(err, message.ErrUnknownAgent) {
		return a, err
	}
	all, err := c.Agents(ctx) // it was given a name
	if err != nil {
		return a, err
	}
	if i := slices.IndexFunc(all, func(a event.Agent) bool { return isOf(a) && a.ChannelID == id }); i >= 0 {
		return all[i], nil
	}

	return a, problem(codeMissing, "there is no session %q in this workspace; session/list has all sessions", id)
}

const (
	// listed is how many sessions a page of the list has.
	listed = 50
	// titleReach is how many records are looked at for the title of one.
	titleReach = 200
)

// ListSessions lists the sessions of the workspace, the newest first.
func (d *Door) ListSessions(ctx context.Context, p acp.ListSessionsRequest) (acp.ListSessionsResponse, error) {
	out := acp.ListSessionsResponse{Sessions: []acp.SessionInfo{}}
	if p.Cwd != nil {
		if folder, err := d.inside(*p.Cwd); err != nil || folder != "" {
			return out, nil // sessions are of the workspace
		}
	}
	from := 0
	if p.Cursor != nil {
		n, err := strconv.Atoi(*p.Cursor)
		if err != nil || n < 0 {
			return out, problem(codeInvalid, "cursor: %q is not one of this list", *p.Cursor)
		}
		from = n
	}
	err := d.link.with(ctx, func(c *control.Client) error {
		all, err := c.Agents(ctx)
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(a event.Agent) bool { return !isOf(a) })
		slices.SortStableFunc(all, func(a, b event.Agent) int { return lastAt(b).Compare(lastAt(a)) })
		out.Sessions = out.Sessions[:0]
		for _, a := range all[min(from, len(all)):min(from+listed, len(all))] {
			info, err := d.info(ctx, c, a)
			if err != nil {
				return err
			}
			out.Sessions = append(out.Sessions, info)
		}
		if from+listed < len(all) {
			out.NextCursor = acp.Ptr(strconv.Itoa(from + listed))
		}
		return nil
	})

	return out, explain("list the sessions", err)
}

func lastAt(a event.Agent) time.Time {
	if a.LastAt == nil {
		return time.Time{}
	}
	return *a.LastAt
}

func (d *Door) info(ctx context.Context, c *control.Client, a event.Agent) (acp.SessionInfo, error) {
	info := acp.SessionInfo{SessionId: acp.SessionId(a.ChannelID), Cwd: d.o.Workspace}
	if a.LastAt != nil {
		info.UpdatedAt = acp.Ptr(a.LastAt.UTC().Format(time.RFC3339))
	}
	page, err := c.History(ctx, a.ID, 0, titleReach)
	if err != nil {
		return info, err
	}
	var entries []*record.Entry
	for _, line := range page.Records {
		if e, err := record.Decode(line); err == nil {
			entries = append(entries, e)
		}
	}
	if title := titleIn(current(entries)); title != "" {
		info.Title = &title
	}

	return info, nil
}

// Prompt sends a message to the session's agent and waits until it is answered.
func (d *Door) Prompt(ctx context.Context, p acp.PromptRequest) (acp.PromptResponse, error) {
	s, err := d.session(p.SessionId)
	if err != nil {
		return acp.PromptResponse{}, err
	}
	ctx, abandon := context.WithCancel(ctx)
	defer abandon()
	turn := s.begin(abandon)
	defer s.leave()
	answer, err := d.answer(ctx, s, turn, p)
	if err != nil && ctx.Err() != nil && !d.left() { // canceled before it was sent
		return acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
	}

	return answer, err
}

// answer carries out a prompt, or sends it and waits.
func (d *Door) answer(ctx context.Context, s *session, turn *prompt, p acp.PromptRequest) (acp.PromptResponse, error) {
	if s.withdrawn(turn) {
		return turn.result()
	}
	m, err := compose(d.o.Workspace, p.Prompt)
	if err != nil {
		return acp.PromptResponse{}, err
	}
	if done, err := (typed{s}).command(ctx, &m); done || err != nil {
		return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, err
	}

	if s.folder != "" {
		m.Text += "\n\n(The editor works in the folder " + s.folder + ".)"
	}
	key := ""
	if p.MessageId != nil {
		key = *p.MessageId
	}
	if err := s.post(ctx, turn, m, key); err != nil {
		return acp.PromptResponse{}, err
	}

	return s.wait(ctx, turn)
}

// Cancel ends the prompt that is in progress when it is called, and does not wait for its turn to end. The wire calls it.
func (d *Door) Cancel(ctx context.Context, p acp.CancelNotification) error {
	s, err := d.session(p.SessionId)
	if err != nil {
		return err
	}
	if turn := s.current(); turn != nil {
		stop := s.cancel(turn) // here, as the prompt may be sent in the next moment
		d.wg.Go(func() { stop(ctx) })
	}

	return nil
}

// CloseSession lets go of a session; its agent stays.
func (d *Door) CloseSession(ctx context.Context, p acp.CloseSessionRequest) (acp.CloseSessionResponse, error) {
	s, err := d.session(p.SessionId)
	if err != nil {
		return acp.CloseSessionResponse{}, err
	}
	if turn := s.current(); turn != nil {
		s.cancel(turn)(ctx)
	}
	s.end()
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.sessions, p.SessionId)

	return acp.CloseSessionResponse{}, nil
}

// SetSessionConfigOption: there are no options beside the modes.
func (d *Door) SetSessionConfigOption(context.Context, acp.SetSessionConfigOptionRequest) (acp.SetSessionConfigOptionResponse, error) {
	return acp.SetSessionConfigOptionResponse{}, problem(codeInvalid, "daycare has no config options: session/set_mode sets the profile")
}
