package peers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"daycare/engine"
	"daycare/engine/address"
	"daycare/engine/beneath"
	"daycare/engine/cluster"
	"daycare/engine/config"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/folders"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/schedule"
	ws "daycare/engine/workspace"
)

// Machines are those that work on the same agents.
type Machines struct {
	Place
	node  *cluster.Node
	fresh []string // agents that the cluster does not know yet
	here
	spending
}

// A Place is where the agents of this machine are.
type Place struct {
	Workspace ws.Place
	Volume    *disk.Volume
	Index     *address.Index
	Asks      *permission.Queue
	Events    *event.Stream
	About     func() cluster.About
	Raised    func() // a limit was raised on another machine
	Log       *slog.Logger
}

// here is what this machine answers by itself.
type here struct {
	system *engine.System
	files  *control.FileStore
	api    http.Handler
	gate   schedule.GateFunc
}

// joinFor bounds how long a start waits for the servers of the cluster.
const joinFor = 20 * time.Second

// File is the file in home, a .daycare, that says which cluster the agents of a workspace are in:
// from its first start with --join on, a workspace is never worked on without the others.
func File(home string) string { return filepath.Join(home, "cluster.json") }

// A membership is what is in it.
type membership struct {
	Servers []string `json:"servers"`
}

// Join makes this machine part of a cluster: the one on the servers to, the one in the settings, or the one that
// the workspace joined before. nil: of none. It is called before the volume is used for agents.
func Join(ctx context.Context, p Place, c config.Cluster, to []string) (*Machines, error) {
	if len(to) > 0 {
		c.Servers = to
	}
	if !c.On() {
		var err error
		if c.Servers, err = Membership(p.Workspace.Data); err != nil || !c.On() {
			return nil, err
		}
	}
	if d := c.Check(); d != nil {
		return nil, fmt.Errorf("%s\n%s", d.Reason, d.Remedy)
	}

	name := c.Name
	if name == "" {
		name, _ = os.Hostname() // one that has none is known by its boot id
	}
	id, err := identity(p.Workspace.Data, p.Volume)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, joinFor)
	defer cancel()
	node, err := cluster.Join(ctx, Config(p.Workspace, c, cluster.Config{Name: name, ID: id, Root: p.Workspace.Data, Volume: p.Volume,
		Covers: folders.Replicated, Shared: p.shared(), About: p.About, Log: p.Log}))
	if err != nil {
		return nil, err
	}
	m := &Machines{Place: p, node: node}
	if err := errors.Join(m.meet(ctx), m.remember(c.Servers)); err != nil {
		m.Close()
		return nil, err
	}

	return m, nil
}

// Config adds to a configuration how the servers are reached, as the settings of a workspace say.
func Config(at ws.Place, c config.Cluster, to cluster.Config) cluster.Config {
	to.Servers, to.Copies = c.Servers, cluster.Copies{Servers: c.Replicas, OwnDisk: cluster.OwnDisk(c.OwnDisk)}
	to.Access = cluster.Access{User: c.User, Password: c.Password.Reveal(), CA: at.Resolve(c.TLSCA),
		Cert: at.Resolve(c.TLSCert), Key: at.Resolve(c.TLSKey)}
	return to
}

// Membership are the servers of the cluster that a workspace has joined; none: it is alone. home
// is its .daycare.
func Membership(home string) ([]string, error) {
	data, err := beneath.Whole(File(home))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var m membership
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err == nil && len(m.Servers) == 0 {
		err = errors.New("it names no servers\nwrite them there, or remove the file to run the agents of this workspace alone")
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", File(home), err)
	}

	return m.Servers, nil
}

func (m *Machines) remember(servers []string) error {
	data, err := json.Marshal(membership{servers})
	if err != nil {
		return err
	}

	return m.Volume.WriteFile("membership", File(m.Workspace.Data), append(data, '\n'))
}

// meet brings together the agents that are known here and those of the cluster.
func (m *Machines) meet(ctx context.Context) error {
	known := m.node.Agents()
	before, err := Membership(m.Workspace.Data)
	if err != nil {
		return err
	}
	for _, a := range m.Index.All() {
		if _, ok := known[a.ID]; !ok && len(known) > 0 && len(before) == 0 {
			return strange(a)
		}
	}
	for _, a := range known {
		m.Index.Met(a.Meta)
		m.Index.SetEnded(a.ID, a.Ended)
	}
	m.Index.Share(m.node)

	for _, a := range m.Index.All() {
		if _, ok := known[a.ID]; ok {
			continue
		}
		removed, err := m.node.Removed(ctx, a.ID)
		if err != nil {
			return err
		}
		if removed {
			m.Index.Forget(a.ID)
			continue
		}
		id, handle := a.ID, a.Handle
		if key := a.Descriptor.Key(); key != "" {
			id, err = m.node.Claim(key, a.ID)
		}
		if err == nil && id == a.ID {
			handle, err = m.node.Number(a.Handle, a.ID)
		}
		if err != nil {
			return err
		}
		if id != a.ID || handle != a.Handle {
			return strange(a)
		}
		m.fresh = append(m.fresh, a.ID)
	}

	return nil
}

// strange refuses a workspace with an agent that is not one of the cluster.
func strange(a address.Meta) error {
	return fmt.Errorf("agent %s (%s) of this workspace is not in the cluster, which has other agents\n"+
		"join with a workspace that has no agents, and import those of this one with: daycare cluster import",
		a.Handle, a.Name)
}

// Engine returns the other machines for the engine, or nil if this one works alone.
func (m *Machines) Engine() engine.Peers {
	if m == nil {
		return nil
	}
	return m.node
}

// Copies returns what keeps attachments for the other machines, or nil if this one works alone.
func (m *Machines) Copies() control.Copies {
	if m == nil {
		return nil
	}
	return m.node
}

// Had reports whether this machine had an agent last, or has it.
func (m *Machines) Had(agent string) bool { return m == nil || m.node.Had(agent) }

// Run serves the other machines until ctx ends. Then the daemon is stopping.
func (m *Machines) Run(ctx context.Context) error {
	if m == nil {
		<-ctx.Done()
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := m.system.Introduce(ctx, m.fresh); err != nil {
			m.Log.Warn("not all agents are in the cluster yet; each joins when it is used", "err", err)
		}
		return nil
	})
	g.Go(func() error { return m.node.Answer(ctx, m.answer) })
	g.Go(func() error { return m.node.ServeItems(ctx, m.system.Item) })
	g.Go(func() error { return m.node.ServeStates(ctx, m.system.StateHere) })
	g.Go(func() error { return m.node.Tend(ctx) })
	g.Go(func() error { return m.tellSpending(ctx) })
	g.Go(func() error {
		return m.node.Serve(ctx, func(ctx context.Context, agent string, it inbox.Item) (message.Receipt, error) {
			if err := m.fetch(it.Files); err != nil {
				return message.Receipt{}, err
			}
			return m.system.Posted(ctx, agent, it)
		})
	})

	err := g.Wait()
	m.node.Part()

	return err
}

// answer does a request of another machine, with the rights of whoever asked there.
func (m *Machines) answer(caller []byte, req *http.Request) (*http.Response, error) {
	var c control.Caller
	if err := json.Unmarshal(caller, &c); err != nil {
		return nil, err
	}
	serve := control.LocalAs(m.api, c).RoundTrip
	id, ok := strings.CutPrefix(req.URL.Path, gatesPath)
	if ok {
		serve = gates{m}.here
	} else if id, ok = m.agentOf(req.URL); !ok {
		return serve(req)
	}

	release, err := m.system.Hold(id)
	if hasMoved(err) {
		return &http.Response{StatusCode: http.StatusMisdirectedRequest, Header: http.Header{}, Body: http.NoBody}, nil
	}
	if err != nil {
		k := newKept()
		turnout{w: k}.fail(err)
		return &http.Response{StatusCode: k.status, Header: k.header, Body: io.NopCloser(&k.body)}, nil
	}
	resp, err := serve(req)
	if err != nil {
		release()
		return nil, err
	}
	resp.Body = held{resp.Body, release}

	return resp, nil
}

// hasMoved reports whether an agent is on another machine, or is about to be.
func hasMoved(err error) bool {
	return errors.Is(err, disk.ErrFenced) || errors.As(err, new(*message.Elsewhere))
}

// held is an answer during which its agent is kept on this machine.
type held struct {
	io.ReadCloser
	release func()
}

// Close waits for the handler before the agent is let go.
func (h held) Close() error {
	err := h.ReadCloser.Close()
	h.release()
	return err
}

// Bring fetches those of the attachments, by their names in files/, that are not here. What
// cannot be had is missing in its conversation, as a file that someone removed is.
func (m *Machines) Bring(names func() []string) {
	if m == nil {
		return
	}
	for _, name := range names() {
		if disk.Exists(filepath.Join(m.Workspace.Data, "files", name)) {
			continue
		}
		id, _, _ := strings.Cut(name, "__")
		if _, err := m.files.Get(id); err != nil {
			m.Log.Warn("an attachment cannot be had", "file", name, "err", err)
		}
	}
}

// fetch makes attachments that another machine stored those of this one.
func (m *Machines) fetch(list []message.File) error {
	for i, f := range list {
		got, err := m.files.Get(f.ID)
		if errors.Is(err, control.ErrNoFile) {
			continue // nobody stored it
		}
		if err != nil {
			return err
		}
		list[i] = got
	}

	return nil
}

// Before serves what is about an agent of another machine there, and all else by api.
func (m *Machines) Before(api http.Handler, system *engine.System, files *control.FileStore) http.Handler {
	if m == nil {
		return api
	}
	m.here.system, m.here.files, m.here.api = system, files, api
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		req.Header.Del(control.MachineHeader) // no client is a machine
		t := turnout{Machines: m, caller: control.CallerOf(req.Context()), w: w, req: req}
		switch path := req.URL.Path; {
		case strings.HasPrefix(path, "/v1/agents/"):
			t.agent()
		case path == "/v1/messages":
			t.message()
		case path == "/v1/agents" && req.Method == http.MethodGet:
			t.merge(merging{list: "agents", key: "id", newer: newer})
		case path == "/v1/permissions":
			t.permissions()
		case strings.HasPrefix(path, "/v1/permissions/"):
			t.whereItIs()
		case path == "/v1/cost":
			t.cost()
		case strings.HasPrefix(path, "/v1/why/"):
			t.story()
		case path == "/v1/trash":
			t.merge(merging{list: "trash", key: "name", at: "at"})
		case strings.HasPrefix(path, "/v1/trash/"):
			t.whereItIs()
		case path == "/v1/events":
			t.watch()
		default:
			t.local(w)
		}
	})
}

// States are the machines that are alive as this one sees it, for users.
func (m *Machines) States() (list []event.Service) {
	if m == nil {
		return nil
	}
	all := m.node.Machines()
	var own cluster.Machine
	for _, one := range all {
		if one.Boot == m.node.Boot() {
			own = one
		}
	}
	for _, one := range all {
		s := event.Service{ID: one.Name, Type: "machine", State: "running", Detail: fmt.Sprintf("%d awake%s", one.Awake, m.today(one))}
		s.Differs = differs(own, one)
		if one.Boot == m.node.Boot() {
			s.Type = "this machine"
			if m.node.Away() {
				s.State, s.LastError = "failing", "the servers of the cluster cannot be reached"
				if err := m.node.Trouble(); err != nil {
					s.LastError = fmt.Sprintf("the servers of the cluster accept nothing: %v", err)
				}
			}
		}
		list = append(list, s)
	}

	return list
}

// mostSkew is how far a clock may be from that of the servers before that is reported. Tasks are due by the clock of the
// machine that fires them, and signatures of webhooks are good for five minutes.
const mostSkew = time.Minute

// differs says what a machine has otherwise than this one; "": nothing that matters.
func differs(own, other cluster.Machine) string {
	var list []string
	if own.Boot != other.Boot && own.ID == other.ID && own.ID != "" {
		list = append(list,
			"the same usage/machine.json as this one, so that its spending is not counted separately: its .daycare is a copy")
	}
	if other.Skew.Abs() > mostSkew {
		list = append(list, fmt.Sprintf("a clock that is %v off that of the servers", other.Skew.Abs().Round(time.Second)))
	}
	if own.Program != other.Program {
		list = append(list, "version "+cmp.Or(other.Program, "unknown"))
	}
	var sections []string
	for key, hash := range own.Settings {
		if other.Settings[key] != hash {
			sections = append(sections, key)
		}
	}
	for key := range other.Settings {
		if _, known := own.Settings[key]; !known {
			sections = append(sections, key)
		}
	}
	if len(sections) > 0 && len(other.Settings) > 0 { // else its version says why
		slices.Sort(sections)
		list = append(list, "other settings of "+strings.Join(sections, ", "))
	}

	return strings.Join(list, "; ")
}

// Close leaves the cluster.
func (m *Machines) Close() {
	if m != nil {
		m.tellLast()
		m.node.Close()
	}
}
