package chaos

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"daycare/engine/control"
	"daycare/engine/crash"
	"daycare/engine/event"
	"daycare/engine/fault"
)

// A user is the users and platforms that talk to the daemon of a case. Whatever
// they do they try again until the daemon has said that it holds, as a platform
// does: a daemon that is dead is one that does not answer yet.
type user struct {
	*world
	root   string // the .daycare directory
	hooks  string // where webhooks are posted
	secret string // signs what is posted
	client *http.Client
	mirror *crash.Mirror // nil: power is not cut in this case

	power sync.RWMutex // held while the power is cut: what a user does to a file comes before it or after
}

// newSecret makes what signs the posts of one harness. The daemons of another one, should
// an address be theirs by now, refuse them.
func newSecret() string { return "whsec_" + base64.StdEncoding.EncodeToString([]byte(rand.Text())) }

const secretEnv = "DAYCARE_CHAOS_SECRET"

func newUser(w *world, root, hooks, secret string) *user {
	return &user{world: w, root: root, hooks: hooks, secret: secret, client: &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{DisableKeepAlives: true},
	}}
}

// say posts a message to a hook until it is accepted. Its delivery id is its key,
// so posting it again is the redelivery that every platform makes.
func (u *user) say(ctx context.Context, hook, key, text string) error {
	body, err := json.Marshal(map[string]string{"text": key + " " + text})
	if err != nil {
		return err
	}
	s := u.offer(saying{key: key, hook: hook, kind: "user_message", texts: []string{key + " " + text}, sender: hook,
		again: func(ctx context.Context) (string, bool) { return u.post(ctx, hook, key, body) }})

	return until(ctx, func() bool {
		item, ok := u.post(ctx, hook, key, body)
		if ok {
			u.accept(s, item)
		}
		return ok
	})
}

func (u *user) post(ctx context.Context, hook, key string, body []byte) (item string, ok bool) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.hooks+"/hooks/"+hook, bytes.NewReader(body))
	if err != nil {
		return "", false
	}
	mac := hmac.New(sha256.New, []byte(u.secret))
	mac.Write(body)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-GitHub-Delivery", key)
	req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	resp, err := u.client.Do(req)
	if err != nil {
		return "", false
	}
	defer resp.Body.Close()
	var receipt struct {
		Item string `json:"item"`
	}
	if resp.StatusCode != http.StatusAccepted || json.NewDecoder(resp.Body).Decode(&receipt) != nil {
		return "", false
	}

	return receipt.Item, true
}

// reachable reports whether the daemon answers.
func (u *user) reachable() bool {
	c, err := control.Dial(u.root)
	if err == nil {
		c.Close()
	}

	return err == nil
}

// ask calls the API until f is content.
func (u *user) ask(ctx context.Context, f func(*control.Client) error) error {
	return until(ctx, func() bool {
		c, err := control.Dial(u.root)
		if err != nil {
			return false
		}
		defer c.Close()

		return f(c) == nil
	})
}

// tell sends something that is not a message of a hook to an agent.
func (u *user) tell(ctx context.Context, ref, key, record string, m control.Message) error {
	m.Dedupe = key
	one := saying{key: key, kind: record, again: func(ctx context.Context) (string, bool) {
		c, err := control.Dial(u.root)
		if err != nil {
			return "", false
		}
		defer c.Close()
		r, err := c.Send(ctx, ref, m)

		return r.Item, err == nil
	}}
	if record == "user_message" {
		one.texts, one.files = []string{m.Text}, map[string]string{}
	}

	for _, f := range m.Files {
		one.files[f.Name] = string(f.Data)
	}
	s := u.offer(one)
	return until(ctx, func() bool {
		item, ok := one.again(ctx)
		if ok {
			u.accept(s, item)
		}
		return ok
	})
}

// decide answers the next permission request. Whoever has seen it answers it until that
// is known, also when it is answered already.
func (u *user) decide(ctx context.Context, what string) error {
	var d *decision
	return u.ask(ctx, func(c *control.Client) error {
		asks, err := c.Permissions(ctx)
		if err != nil {
			return err
		}
		if d == nil {
			if d, err = u.decision(what, asks); err != nil {
				return err
			}
		}

		err = c.Decide(ctx, d.token, what, "chaos")
		if u.mirror != nil && errors.Is(err, control.ErrNoAsk) {
			u.withdraw(d) // the power went before the request was on the disk: it comes anew
			d, err = nil, errNotYet
		}
		if first := new(control.Decided); errors.As(err, &first) {
			if err = nil; first.Decision != what { // the clock was ahead of the answer: it is asked anew
				u.withdraw(d)
				d, err = nil, errNotYet
			}
		}
		if err == nil {
			u.concluded(d)
		}

		return err
	})
}

// decision takes note of what a user is about to answer to the first request that they
// did not answer before.
func (u *user) decision(what string, asks []event.Ask) (*decision, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, a := range asks {
		if !slices.ContainsFunc(u.decisions, func(d *decision) bool { return d.token == a.Token }) {
			return u.noteDecision(a.Token, what)
		}
	}

	return nil, errNotYet
}

// noteDecision notes a decision. The lock is held.
func (u *user) noteDecision(token, what string) (*decision, error) {
	before, err := u.approved()
	if err != nil {
		return nil, err
	}
	d := &decision{token: token, what: what, before: before}
	u.decisions = append(u.decisions, d)
	u.note("decides", []string{token, what})

	return d, nil
}

// withdraw forgets a decision that was about nothing that lasted.
func (u *user) withdraw(d *decision) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.decisions = slices.DeleteFunc(u.decisions, func(other *decision) bool { return other == d })
	u.note("withdraws", d.token)
}

func (u *user) concluded(d *decision) {
	u.mu.Lock()
	defer u.mu.Unlock()
	d.accepted = true
	u.note("decided", d.token)
}

// revoke takes back what was allowed for always.
func (u *user) revoke(ctx context.Context) error {
	u.mu.Lock()
	d, err := u.noteDecision("", revoked)
	u.mu.Unlock()
	if err != nil {
		return err
	}

	return u.ask(ctx, func(c *control.Client) error {
		set, err := c.Grants(ctx, "0/")
		if err != nil {
			return err
		}

		for _, g := range set.Grants {
			if err := c.Revoke(ctx, "0/", g.Tag); err != nil && !errors.Is(err, fault.NotGranted) {
				return err
			}
		}

		u.concluded(d)
		return nil
	})
}

var errNotYet = errors.New("not yet")

// drop leaves a letter, durably, as a careful script does. one is what it says.
func (u *user) drop(name, content string, one saying) error {
	one.kind = "user_message"
	s := u.offer(one)
	u.power.RLock()
	defer u.power.RUnlock()
	dir := filepath.Join(u.root, "drop")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}

	temp := filepath.Join(dir, "."+name)
	if err := os.WriteFile(temp, []byte(content), 0o600); err != nil {
		return err
	}
	if err := u.settled(temp); err != nil {
		return err
	}
	if err := os.Rename(temp, filepath.Join(dir, name)); err != nil {
		return err
	}
	if err := errors.Join(u.settled(dir), u.settled(u.root)); err != nil {
		return err
	}

	u.accept(s, "")
	return nil
}

// settled syncs a file of the user's, or a folder.
func (u *user) settled(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if u.mirror != nil {
		return u.mirror.Sync(f, (*os.File).Sync)
	}

	return f.Sync()
}

// happened waits for the effect of a tool, or for more than n answers: a call that a death
// interrupted may have no effect.
func (u *user) happened(ctx context.Context, n int, key string) error {
	return until(ctx, func() bool {
		all, err := u.done()
		return err != nil || u.distinct() > n || slices.ContainsFunc(all, func(e effect) bool { return e.key == key })
	})
}

// unnoted is an answer that its platform took and of which no history has the delivery; "": there is no such answer.
func (u *user) unnoted() (out string, err error) {
	all, err := agentFiles(u.root, nil)
	if err != nil {
		return "", err
	}
	recorded := map[string]bool{}
	for _, a := range all {
		for _, l := range a.history {
			if l.Type == "delivery" {
				recorded[l.delivered()] = true
			}
		}
	}

	u.mu.Lock()
	defer u.mu.Unlock()
	for _, r := range u.replies {
		if !r.told.IsZero() && !recorded[r.out] {
			return r.out, nil
		}
	}

	return "", nil
}

// newestLife is the number of the newest life.
func (u *user) newestLife() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.life
}

// answers waits until so many answers came.
func (u *user) answers(ctx context.Context, n int) error {
	return until(ctx, func() bool { return u.distinct() >= n })
}
