package telegram

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"daycare/connectors/chat"
	"daycare/connectors/ingress"
	"daycare/engine/message"
)

// maxUpdate is how large a posted update may be, in bytes. Nothing of it is read
// before its sender is known.
const maxUpdate = 1 << 20

// secretHeader carries the secret that setWebhook got.
const secretHeader = "X-Telegram-Bot-Api-Secret-Token"

// A receiver takes updates that Telegram posts.
type receiver struct {
	o       Options
	api     *api
	log     *slog.Logger
	take    take
	ingress ingress.Listener
	order   sync.Mutex // held while a posted update is taken
}

// secret proves that a request is Telegram's. It follows from the token, so
// there is nothing to set and nothing to forget.
func (h *receiver) secret() string {
	mac := hmac.New(sha256.New, []byte(h.api.token))
	mac.Write([]byte("daycare webhook of " + h.o.ID))
	return hex.EncodeToString(mac.Sum(nil))
}

// Address is where the webhook listens, HOST:PORT; "" while it does not.
func (c *Connector) Address() string { return c.hook.ingress.Address() }

// serve has Telegram post updates, one after the other, until ctx ends. What is
// not answered with 200 Telegram posts again.
func (h *receiver) serve(ctx context.Context, deliver message.Deliver) error {
	return h.ingress.Serve(ctx, h.o.Webhook.Listen, func(w http.ResponseWriter, r *http.Request) { h.posted(w, r, deliver) }, h.register)
}

// register tells Telegram where to post.
func (h *receiver) register(ctx context.Context) error {
	return h.api.call(ctx, "setWebhook", map[string]any{"url": h.o.Webhook.URL, "secret_token": h.secret(),
		"allowed_updates": allowedUpdates, "max_connections": 1}, nil)
}

// posted takes one update that was posted.
func (h *receiver) posted(w http.ResponseWriter, r *http.Request, deliver message.Deliver) {
	u, status := h.authentic(w, r)
	if status != http.StatusOK {
		h.log.Debug("webhook request refused", "status", status, "remote", r.RemoteAddr)
		http.Error(w, http.StatusText(status), status)
		return
	}

	h.order.Lock() // setWebhook asks for one post at a time; a proxy may have held two
	err := h.take(r.Context(), deliver, u)
	h.order.Unlock()
	if err == nil {
		return // 200
	}

	h.log.Warn("update not accepted", "update", u.ID, "err", err)
	chat.Refuse(w, err)
}

// authentic reads an update of a request that is Telegram's. An old update that is
// posted again is dropped by its number, which is its dedupe key.
func (h *receiver) authentic(w http.ResponseWriter, r *http.Request) (u update, status int) {
	path := "/"
	if to, err := url.Parse(h.o.Webhook.URL); err == nil && to.Path != "" {
		path = to.Path
	}

	switch {
	case r.URL.Path != path:
		return u, http.StatusNotFound
	case subtle.ConstantTimeCompare([]byte(r.Header.Get(secretHeader)), []byte(h.secret())) != 1:
		return u, http.StatusUnauthorized
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		return u, http.StatusMethodNotAllowed
	case !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json"):
		return u, http.StatusUnsupportedMediaType
	case r.ContentLength > maxUpdate:
		return u, http.StatusRequestEntityTooLarge
	}

	body, err := h.ingress.Body(w, r, maxUpdate)
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
