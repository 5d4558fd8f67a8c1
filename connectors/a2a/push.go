package a2a

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"daycare/connectors/chat"
	"daycare/engine/event"
	"daycare/engine/lan"
	"daycare/engine/message"
)

const (
	pushFile    = "push.json"
	maxConfigs  = 5    // notifications of a task
	maxWatched  = 1000 // tasks with notifications
	maxURL      = 2048 // bytes
	maxSecret   = 2048 // bytes of a token or of credentials
	pushAge     = 7 * 24 * time.Hour
	pushTime    = 30 * time.Second
	longestWait = 24 * time.Hour
)

// A watched is a task of which clients are notified.
type watched struct {
	Agent   string           `json:"agent"`
	Context string           `json:"context"`
	At      time.Time        `json:"at"`
	Configs []sdk.PushConfig `json:"configs"`
}

// pushes are what clients want to be notified of, in push.json: a JSON object by task. It is read
// anew for each change, because a connector with older settings may still be at work.
type pushes struct {
	connector string
	keep      chat.Keeper

	mu sync.Mutex
}

func (p *pushes) load() (map[string]watched, error) {
	all := map[string]watched{}
	data, err := p.keep.Load(p.connector, pushFile)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s of connector %s: %w", pushFile, p.connector, err)
	}

	return all, nil
}

// change changes what is kept, durably.
func (p *pushes) change(f func(all map[string]watched) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	all, err := p.load()
	if err != nil {
		return err
	}
	maps.DeleteFunc(all, func(_ string, w watched) bool { return time.Since(w.At) > pushAge })
	if err := f(all); err != nil {
		return err
	}
	data, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("encode %s: %w", pushFile, err)
	}

	return p.keep.Save(p.connector, pushFile, data)
}

// of is what is kept of a task.
func (p *pushes) of(task string) (watched, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all, err := p.load()
	return all[task], err
}

func (p *pushes) list(task string) ([]*sdk.PushConfig, error) {
	w, err := p.of(task)
	list := make([]*sdk.PushConfig, len(w.Configs))
	for i := range w.Configs {
		list[i] = &w.Configs[i]
	}

	return list, err
}

// save keeps what a client wants to be notified of.
func (p *pushes) save(notify []string, from call, task, context string, c *sdk.PushConfig) (*sdk.PushConfig, error) {
	if err := checkPush(notify, c); err != nil {
		return nil, err
	}
	saved := *c
	saved.TaskID = sdk.TaskID(task)
	if saved.ID == "" {
		saved.ID = strings.ToLower(rand.Text())
	}
	err := p.change(func(all map[string]watched) error {
		w := all[task]
		w.Agent, w.Context, w.At = from.agent.ID, context, time.Now().UTC()
		same := func(o sdk.PushConfig) bool { return o.ID == saved.ID || c.ID == "" && o.URL == saved.URL }
		if i := slices.IndexFunc(w.Configs, same); i >= 0 { // the same message, sent again
			w.Configs[i] = saved
		} else {
			w.Configs = append(w.Configs, saved)
		}
		if len(w.Configs) > maxConfigs {
			return bad("a task can have %d notifications", maxConfigs)
		}
		if all[task] = w; len(all) > maxWatched {
			return sdk.NewError(sdk.ErrServerError, fmt.Sprintf("%d tasks have notifications already; try again later", maxWatched))
		}
		return nil
	})

	return &saved, err
}

// forget removes one notification of a task.
func (p *pushes) forget(task, id string) error {
	return p.change(func(all map[string]watched) error {
		w := all[task]
		w.Configs = slices.DeleteFunc(w.Configs, func(c sdk.PushConfig) bool { return c.ID == id })
		if all[task] = w; len(w.Configs) == 0 {
			delete(all, task)
		}
		return nil
	})
}

// remove removes all notifications of a task. What cannot be removed now is removed by its age.
func (p *pushes) remove(task string) {
	_ = p.change(func(all map[string]watched) error {
		delete(all, task)
		return nil
	})
}

// checkPush refuses a notification that would never leave. It keeps the address out of its errors:
// it may hold a token.
func checkPush(notify []string, c *sdk.PushConfig) error {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Hostname() == "" || len(c.URL) > maxURL:
		return bad("the url of a notification is not an https:// address of up to %d bytes", maxURL)
	case u.User != nil:
		return bad("the url of a notification contains a user name or password; use authentication")
	case u.Scheme != "https" && (u.Scheme != "http" || !slices.Contains(notify, target(u))):
		return bad("the url of a notification is not https://, and its host and port are not in notify of the settings")
	case len(c.ID) > maxKey || len(c.Token) > maxSecret || c.Auth != nil && len(c.Auth.Credentials)+len(c.Auth.Scheme) > maxSecret:
		return bad("the id, the token or the credentials of a notification are too long")
	}
	if host, err := netip.ParseAddr(u.Hostname()); err == nil && lan.Of(host, net.InterfaceAddrs) != lan.Public &&
		!slices.Contains(notify, target(u)) {
		return bad("the url of a notification leads into the network of this agent, but its host and port are not in " +
			"notify of the settings")
	}

	return nil
}

// target is the host and port that an address leads to.
func target(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}

	return net.JoinHostPort(u.Hostname(), port)
}

// newCaller makes the client of notifications. Wherever a name leads, the address decides when it
// is dialled: a public one, or one that the settings list. It follows no redirect, which would
// carry an answer to where nobody wanted it, and keeps no connection.
func newCaller(notify []string, mine lan.Interfaces) *http.Client {
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		listed := slices.Contains(notify, address)
		d := net.Dialer{Timeout: 10 * time.Second, Control: func(_, to string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(to)
			if err == nil {
				place := lan.Of(ap.Addr(), mine)
				if place == lan.Public || place == lan.Inside && listed {
					return nil
				}
			}
			return fmt.Errorf("%w: if that is intended, list its host and port in notify of the connector", errInside)
		}}
		return d.DialContext(ctx, network, address)
	}

	return &http.Client{Timeout: pushTime,
		Transport:     &http.Transport{DialContext: dial, DisableKeepAlives: true, TLSHandshakeTimeout: 10 * time.Second},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// errInside: a notification leads to where clients must not send anything.
var errInside = errors.New("the address leads into the network of this machine")

// Answers reports whether a client wants to be notified of a task: its answer is then promised, and
// so it is if that cannot be read now. Others read it from their requests, and it stays in history.
func (c *Connector) Answers(to message.Address) bool {
	w, err := c.pushes.of(to.ThreadID)
	return err != nil || len(w.Configs) > 0
}

// Send notifies the clients of a task. An address that refuses is forgotten; the others are tried
// again, all of them, with the same Idempotency-Key.
func (c *Connector) Send(ctx context.Context, out message.Outgoing) (remoteID string, err error) {
	task := out.To.ThreadID
	w, err := c.pushes.of(task)
	if err != nil {
		return "", err
	}
	if len(w.Configs) == 0 {
		return "", &message.NotSent{Final: true, Err: errors.New("no client asked to be notified of the task")}
	}
	t := c.notified(ctx, w, out)
	body, err := json.Marshal(sdk.StreamResponse{Event: t})
	if err != nil {
		return "", &message.NotSent{Final: true, Err: fmt.Errorf("encode the task: %w", err)}
	}

	for _, p := range w.Configs {
		if err = c.notify(ctx, p, out.Key(), body); err == nil {
			continue
		}
		if not, ok := errors.AsType[*message.NotSent](err); !ok || !not.Final || len(w.Configs) == 1 {
			return "", err
		}
		c.log.Warn("a client cannot be notified", "task", task, "err", err)
		_ = c.pushes.forget(task, p.ID) // else it is refused once more
	}
	if t.Status.State.Terminal() {
		c.pushes.remove(task)
	}

	return "", nil
}

// notified is the task as sent to its clients.
func (c *Connector) notified(ctx context.Context, w watched, out message.Outgoing) *sdk.Task {
	p := event.Posted{Agent: w.Agent, Item: out.To.ThreadID, State: "done", MessageID: out.ReplyTo,
		Route: &event.Route{ChannelID: out.To.ChannelID}}
	if c.items != nil {
		if found, err := c.items.Item(ctx, w.Agent, out.To.ThreadID); err == nil && found.Route != nil {
			p = found
		}
	}
	if p.Outcome == nil || p.Outcome.Text != out.Text { // it went on after an approval
		p.Outcome = &event.Outcome{Reason: "done", Text: out.Text}
	}
	t := newTask(p)
	t.History = nil // the client has said it

	return t
}

// notify makes one notification.
func (c *Connector) notify(ctx context.Context, p sdk.PushConfig, key string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, bytes.NewReader(body))
	if err != nil {
		return &message.NotSent{Final: true, Err: errors.New("notify a client of A2A: its url is broken")}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "daycare")
	req.Header.Set("Idempotency-Key", key)
	if p.Token != "" { // SDKs read one or the other
		req.Header.Set("X-A2A-Notification-Token", p.Token)
		req.Header.Set("A2A-Notification-Token", p.Token)
	}
	if p.Auth != nil && p.Auth.Credentials != "" {
		req.Header.Set("Authorization", p.Auth.Scheme+" "+p.Auth.Credentials)
	}

	resp, err := c.caller.Do(req)
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // without the address, which may hold a token
	}
	if errors.Is(err, errInside) {
		return &message.NotSent{Final: true, Err: fmt.Errorf("notify a client of A2A: %w", err)}
	}
	if err != nil {
		return fmt.Errorf("notify a client of A2A: %w", err)
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // what it says is not of interest

	return judge(resp)
}

// judge makes of a response what the engine is to do next.
func judge(resp *http.Response) error {
	status := resp.StatusCode
	err := fmt.Errorf("a client of A2A answered its notification with %d %s", status, http.StatusText(status))
	switch {
	case status >= 200 && status < 300:
		return nil
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return &message.NotSent{After: min(time.Duration(max(seconds, 0))*time.Second, longestWait), Err: err}
	case status == http.StatusRequestTimeout || status == http.StatusTooEarly || status >= 500:
		return err
	}

	return &message.NotSent{Final: true, Err: err}
}
