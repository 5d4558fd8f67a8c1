package peers

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"daycare/engine/address"
	"daycare/engine/apitoken"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/message"
)

// A turnout leads one request to the machine that it is for.
type turnout struct {
	*Machines
	caller control.Caller
	w      http.ResponseWriter
	req    *http.Request
}

const (
	// turnFor bounds how long a request looks for the machine that its agent is on: one that
	// died is replaced within seconds.
	turnFor   = 20 * time.Second
	turnPause = 100 * time.Millisecond
	// listFor bounds how long a list waits for the entries of another machine.
	listFor = 3 * time.Second
	// costFor is that for what is summed from all histories of a machine.
	costFor = time.Minute
)

// agentOf is the agent that the path of a request names; ok is false for none.
func (m *Machines) agentOf(u *url.URL) (id string, ok bool) {
	rest, ok := strings.CutPrefix(u.EscapedPath(), "/v1/agents/")
	if !ok {
		return "", false
	}
	ref, _, _ := strings.Cut(rest, "/")
	name, err := url.PathUnescape(ref)
	if err == nil {
		id, err = m.Index.Resolve(name)
	}

	return id, err == nil
}

// local serves the request on this machine.
func (t turnout) local(w http.ResponseWriter) { t.api.ServeHTTP(w, t.req) }

func (t turnout) fail(err error) {
	e := control.Describe(err)
	t.w.Header().Set("Content-Type", "application/json")
	if errors.Is(err, disk.ErrAway) {
		t.w.Header().Set("Retry-After", "5")
	}
	t.w.WriteHeader(e.Status)
	_ = json.NewEncoder(t.w).Encode(control.ErrorBody{Error: e}) // an error means that the client went away
}

// agent leads a request about the agent that its path names to who owns it.
func (t turnout) agent() {
	id, ok := t.agentOf(t.req.URL)
	if !ok {
		t.local(t.w) // which says what is wrong
		return
	}
	if err := t.lead(id, func() { t.local(t.w) }); err != nil {
		t.fail(err)
	}
}

// Lead is a control.Lead.
func (m *Machines) Lead(w http.ResponseWriter, req *http.Request, agent string, serve func()) error {
	if m == nil {
		serve()
		return nil
	}

	return turnout{Machines: m, caller: control.CallerOf(req.Context()), w: w, req: req}.lead(agent, serve)
}

// lead serves a request about an agent by here, or has the machine that owns the agent serve it. An agent that no machine owns
// is owned here for as long as the request takes. A request of another machine is not led further: that one looks again.
func (t turnout) lead(id string, here func()) error {
	var body []byte
	for end := time.Now().Add(turnFor); ; {
		release, err := t.system.Hold(id)
		if err == nil {
			defer release()
			if t.changes() && t.node.Away() {
				return disk.ErrAway // it would wait for the servers, however long they are away
			}
			if body != nil { // it was read for another machine
				t.req.Body = io.NopCloser(bytes.NewReader(body))
			}
			here()
			return nil
		}
		if t.req.Header.Get(control.MachineHeader) != "" && hasMoved(err) {
			t.w.WriteHeader(http.StatusMisdirectedRequest)
			return nil
		}
		if there, ok := errors.AsType[*message.Elsewhere](err); ok {
			if body == nil {
				if body, err = t.body(); err != nil {
					return err
				}
			}
			if err = t.there(there.Node, body); !hasMoved(err) {
				return err
			}
		} else if !errors.Is(err, disk.ErrFenced) {
			return err
		}

		select {
		case <-time.After(turnPause):
		case <-t.req.Context().Done():
			return nil // nobody reads the answer
		}
		if time.Now().After(end) {
			return errors.Join(disk.ErrAway, err)
		}
	}
}

// changes reports whether the request changes files of the agent. The end of a turn is not put off.
func (t turnout) changes() bool {
	return t.req.Method != http.MethodGet && t.req.Method != http.MethodHead && !strings.HasSuffix(t.req.URL.Path, "/stop")
}

// body reads the body of a request that another machine gets, and brings what it names along.
func (t turnout) body() ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(t.w, t.req.Body, maxAsked))
	if err != nil || !strings.HasSuffix(t.req.URL.Path, "/messages") || !t.caller.Local {
		return append([]byte{}, body...), err
	}
	var m map[string]json.RawMessage
	var files []control.File
	if json.Unmarshal(body, &m) != nil || json.Unmarshal(m["files"], &files) != nil {
		return body, nil // the other machine says what is wrong
	}

	for i, f := range files {
		if f.Path == "" {
			continue
		}
		kept, err := t.files.Adopt(f.Path) // a path of this machine
		if err != nil {
			return nil, err
		}
		files[i] = control.File{ID: kept.ID}
	}
	if m["files"], err = json.Marshal(files); err != nil {
		return nil, err
	}

	return json.Marshal(m)
}

// maxAsked bounds the body of a request to another machine, in bytes.
const maxAsked = 48 << 20

// there has another machine serve the request. *message.Elsewhere: that one does not own the
// agent any more, or is gone and has not seen the request.
func (t turnout) there(node string, body []byte) error {
	resp, err := t.ask(node, t.req, body)
	if err != nil {
		return err
	}
	if resp.StatusCode == http.StatusMisdirectedRequest {
		return errors.Join(&message.Elsewhere{Node: node}, resp.Body.Close())
	}
	defer resp.Body.Close() // everything was read, or the client is gone

	resp.Header.Set(control.MachineHeader, t.nameOf(node))
	t.copy(resp)
	return nil
}

// nameOf is a machine for users.
func (m *Machines) nameOf(boot string) string {
	for _, one := range m.node.Machines() {
		if one.Boot == boot {
			return cmp.Or(one.Name, boot)
		}
	}

	return boot
}

// copy passes an answer on: a stream as it comes, all else when it is whole.
func (t turnout) copy(resp *http.Response) {
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	if kind != "text/event-stream" && kind != "application/x-tar" {
		data, err := io.ReadAll(resp.Body)
		if err != nil {
			t.fail(err)
			return
		}
		k := &kept{header: resp.Header, status: resp.StatusCode}
		k.body.Write(data)
		t.answer(k)
		return
	}

	for name, values := range resp.Header {
		t.w.Header()[name] = values
	}
	t.w.WriteHeader(resp.StatusCode)
	flush := http.NewResponseController(t.w)
	buffer := make([]byte, 32<<10)
	for {
		k, err := resp.Body.Read(buffer)
		if k > 0 {
			if _, werr := t.w.Write(buffer[:k]); werr != nil {
				return
			}
			_ = flush.Flush() // what cannot is read at its end
		}
		if err != nil {
			return // the client sees that the last event, or the end of an archive, is missing
		}
	}
}

// ask sends a request to a machine in the name of the caller.
func (t turnout) ask(node string, req *http.Request, body []byte) (*http.Response, error) {
	caller, err := json.Marshal(t.caller)
	if err != nil {
		return nil, err
	}
	sent := req.Clone(req.Context())
	sent.Body = io.NopCloser(bytes.NewReader(body))
	sent.Header.Del("Accept-Encoding") // the client gets what the other machine says
	sent.Header.Set(control.MachineHeader, t.node.Boot())

	return t.node.Ask(node, caller, sent)
}

// message leads a message for an address to the agent that has it.
func (t turnout) message() {
	rights := t.caller.Rights
	if !rights.Allow(apitoken.Admin) || rights.Restricted() {
		t.local(t.w) // which refuses it
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(t.w, t.req.Body, maxAsked))
	if err != nil {
		t.fail(err)
		return
	}
	t.req.Body = io.NopCloser(bytes.NewReader(body))
	var m control.Message
	if json.Unmarshal(body, &m) != nil {
		t.local(t.w)
		return
	}
	id, ok := t.Index.Lookup(address.Descriptor{Type: address.User, Connector: m.Connector, ChannelID: m.ChannelID, UserID: m.UserID})
	if !ok {
		t.local(t.w) // the agent is made here
		return
	}

	t.req.URL.Path, t.req.URL.RawPath = "/v1/agents/"+id+"/messages", ""
	t.agent()
}

// kept is an answer in memory.
type kept struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func newKept() *kept { return &kept{header: http.Header{}, status: http.StatusOK} }

func (k *kept) Header() http.Header         { return k.header }
func (k *kept) WriteHeader(status int)      { k.status = status }
func (k *kept) Write(p []byte) (int, error) { return k.body.Write(p) }

// answer passes the answer of this machine on.
func (t turnout) answer(k *kept) {
	for name, values := range k.header {
		t.w.Header()[name] = values
	}
	t.w.WriteHeader(k.status)
	_, _ = t.w.Write(k.body.Bytes()) // an error means that the client went away
}

// others asks all other machines at once, each for a while, and returns their answers.
func others[T any](t turnout, within time.Duration) (all []T) {
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, m := range t.node.Machines() {
		if m.Boot == t.node.Boot() {
			continue
		}
		asking.Go(func() {
			var body T
			if err := t.of(m.Boot, within, &body); err != nil {
				t.Log.Info("an answer lacks what another machine has", "machine", m.Name, "path", t.req.URL.Path, "err", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, body)
		})
	}
	asking.Wait()

	return all
}

// of decodes the answer of another machine.
func (t turnout) of(node string, within time.Duration, body any) error {
	ctx, cancel := context.WithTimeout(t.req.Context(), within)
	defer cancel()
	resp, err := t.ask(node, t.req.WithContext(ctx), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close() // all of it was read
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}

	return json.NewDecoder(resp.Body).Decode(body)
}

// cost answers with what all machines have spent.
func (t turnout) cost() {
	t.req.Header.Del("Accept-Encoding") // it is read here
	w := newKept()
	t.local(w)
	var bill control.Bill
	if w.status != http.StatusOK || json.Unmarshal(w.body.Bytes(), &bill) != nil {
		t.answer(w)
		return
	}
	for _, theirs := range others[control.Bill](t, costFor) {
		bill.Add(theirs)
	}
	t.say(w, bill)
}

// say answers as this machine did, with another body.
func (t turnout) say(w *kept, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		t.fail(err)
		return
	}
	w.body.Reset()
	w.body.Write(append(data, '\n'))
	t.answer(w)
}

// whereItIs leads what is about a request for permission, or something in the trash, to the machine that has it.
func (t turnout) whereItIs() {
	body, err := io.ReadAll(http.MaxBytesReader(t.w, t.req.Body, maxAsked))
	if err != nil {
		t.fail(err)
		return
	}
	t.req.Body = io.NopCloser(bytes.NewReader(body))
	w := newKept()
	t.local(w)
	if w.status != http.StatusNotFound {
		t.answer(w)
		return
	}
	for _, m := range t.node.Machines() {
		if m.Boot == t.node.Boot() {
			continue
		}
		resp, err := t.ask(m.Boot, t.req, body)
		if err != nil {
			t.Log.Info("a machine does not say whether it has what a request is about", "path", t.req.URL.Path,
				"machine", m.Name, "err", err)
			continue
		}
		if resp.StatusCode != http.StatusNotFound {
			defer resp.Body.Close() // all of it was read
			t.copy(resp)
			return
		}
		resp.Body.Close()
	}

	t.answer(w)
}

// story leads who asks what led to something to the machine of its agent: a folder that another machine had before may end in
// the middle.
func (t turnout) story() {
	w := newKept()
	t.local(w)
	var found struct{ Agent string }
	switch {
	case w.status == http.StatusNotFound:
		t.whereItIs()
		return
	case w.status == http.StatusOK && json.Unmarshal(w.body.Bytes(), &found) == nil:
		if node := t.node.Owner(found.Agent); cmp.Or(node, t.node.Boot()) != t.node.Boot() {
			switch err := t.there(node, nil); {
			case err == nil:
				return
			case !hasMoved(err):
				t.fail(err)
				return
			}
		}
	}
	t.answer(w)
}
