package chaos

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"daycare/engine/control"
	"daycare/engine/crash"
)

// A user is the people and platforms that talk to the daemon of a case. Whatever
// they do they try again until the daemon has said that it holds, as a platform
// does: a daemon that is dead is one that does not answer yet.
type user struct {
	*world
	root   string // the .daycare directory
	hooks  string // where webhooks are posted
	client *http.Client
	mirror *crash.Mirror // nil: power is not cut in this case
}

// secret signs what is posted.
const secret = "whsec_Y2hhb3MtY2hhb3MtY2hhb3M="

const secretEnv = "DAYCARE_CHAOS_SECRET"

func newUser(w *world, root, hooks string) *user {
	return &user{world: w, root: root, hooks: hooks, client: &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{DisableKeepAlives: true},
	}}
}

// say posts a message to a hook until it is accepted. Its delivery id is its key,
// so posting it again is the redelivery that every platform makes.
func (u *user) say(ctx context.Context, hook, key, text string) error {
	s := u.offer(key, hook, "user_message")
	body, err := json.Marshal(map[string]string{"text": key + " " + text})
	if err != nil {
		return err
	}
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
	mac := hmac.New(sha256.New, []byte(secret))
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

// tell sends something that is no message of a hook to an agent.
func (u *user) tell(ctx context.Context, ref, key, record string, m control.Message) error {
	s := u.offer(key, "", record)
	m.Dedupe = key
	return u.ask(ctx, func(c *control.Client) error {
		r, err := c.Send(ctx, ref, m)
		if err == nil {
			u.accept(s, r.Item)
		}
		return err
	})
}

// decide answers the permission request that comes. Whoever has seen it answers it
// until that is known, also when it is answered already.
func (u *user) decide(ctx context.Context, decision string) error {
	token := ""
	return u.ask(ctx, func(c *control.Client) error {
		asks, err := c.Permissions(ctx)
		if err != nil {
			return err
		}
		if token == "" && len(asks) == 0 {
			return errNotYet
		}
		if token == "" {
			token = asks[0].Token
		}
		err = c.Decide(ctx, token, decision, "chaos")
		if errors.As(err, new(*control.Decided)) {
			return nil
		}
		return err
	})
}

var errNotYet = errors.New("not yet")

// drop leaves a letter, durably, as a careful script does.
func (u *user) drop(name, key, content string) error {
	s := u.offer(key, "", "user_message")
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

// happened waits for the effect of a tool, or for an answer: a call that a death
// interrupted may have none.
func (u *user) happened(ctx context.Context, key string) error {
	return until(ctx, func() bool {
		all, err := u.done()
		return err != nil || len(u.received()) > 0 || slices.ContainsFunc(all, func(e effect) bool { return e.key == key })
	})
}

// answers waits until so many answers came.
func (u *user) answers(ctx context.Context, n int) error {
	return until(ctx, func() bool {
		distinct := map[string]bool{}
		for _, r := range u.received() {
			distinct[r.out] = true
		}
		return len(distinct) >= n
	})
}
