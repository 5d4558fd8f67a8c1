package telegram

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"daycare/connectors/chat"
	"daycare/engine/message"
)

// maxUpdate is how large a posted update may be, in bytes. Nothing of it is read
// before its sender is known.
const maxUpdate = 1 << 20

// secretHeader carries what setWebhook was told.
const secretHeader = "X-Telegram-Bot-Api-Secret-Token"

// hookSecret proves that a request is Telegram's. It follows from the token, so
// there is nothing to set and nothing to forget.
func (c *Connector) hookSecret() string {
	mac := hmac.New(sha256.New, []byte(c.api.token))
	mac.Write([]byte("daycare webhook of " + c.o.ID))
	return hex.EncodeToString(mac.Sum(nil))
}

// Address is where the webhook listens, HOST:PORT; "" while it does not.
func (c *Connector) Address() string { return c.ingress.Address() }

// serve has Telegram post updates, one after the other, until ctx ends. What is
// not answered with 200 Telegram posts again.
func (c *Connector) serve(ctx context.Context, deliver message.Deliver) error {
	return c.ingress.Serve(ctx, c.o.Webhook.Listen, func(w http.ResponseWriter, r *http.Request) { c.posted(w, r, deliver) }, c.register)
}

// register tells Telegram where to post.
func (c *Connector) register(ctx context.Context) error {
	return c.api.call(ctx, "setWebhook", map[string]any{"url": c.o.Webhook.URL, "secret_token": c.hookSecret(),
		"allowed_updates": allowedUpdates, "max_connections": 1}, nil)
}

// posted takes one update that was posted.
func (c *Connector) posted(w http.ResponseWriter, r *http.Request, deliver message.Deliver) {
	u, status := c.authentic(w, r)
	if status != http.StatusOK {
		c.log.Debug("a request to the webhook was refused", "status", status, "remote", r.RemoteAddr)
		http.Error(w, http.StatusText(status), status)
		return
	}
	c.order.Lock() // Telegram is told to post one at a time; a proxy may have held two
	err := c.take(r.Context(), deliver, u)
	c.order.Unlock()
	if err == nil {
		w.WriteHeader(http.StatusOK)
		return
	}
	c.log.Warn("an update was not accepted", "update", u.ID, "err", err)
	chat.Refuse(w, err)
}

// authentic reads an update of a request that is Telegram's. An old update that is
// posted again is dropped by its number, which is its dedupe key.
func (c *Connector) authentic(w http.ResponseWriter, r *http.Request) (u update, status int) {
	path := "/"
	if to, err := url.Parse(c.o.Webhook.URL); err == nil && to.Path != "" {
		path = to.Path
	}
	switch {
	case r.URL.Path != path:
		return u, http.StatusNotFound
	case subtle.ConstantTimeCompare([]byte(r.Header.Get(secretHeader)), []byte(c.hookSecret())) != 1:
		return u, http.StatusUnauthorized
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		return u, http.StatusMethodNotAllowed
	case !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json"):
		return u, http.StatusUnsupportedMediaType
	case r.ContentLength > maxUpdate:
		return u, http.StatusRequestEntityTooLarge
	}
	body, err := c.ingress.Body(w, r, maxUpdate)
	if err != nil {
		return u, http.StatusBadRequest
	}
	if len(body) > maxUpdate {
		return u, http.StatusRequestEntityTooLarge
	}
	if err := json.Unmarshal(body, &u); err != nil || u.ID == 0 {
		return u, http.StatusBadRequest
	}
	return u, http.StatusOK
}
