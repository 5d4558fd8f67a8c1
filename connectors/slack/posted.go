package slack

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"daycare/connectors/chat"
	"daycare/connectors/ingress"
	"daycare/engine/message"
)

// Limits of the listener.
const (
	maxBody      = 1 << 20 // bytes
	maxRequests  = 32      // at once: what strangers can make us hold is this times maxBody
	replayWindow = 5 * time.Minute
)

// Address is where posted events are taken, HOST:PORT; "" while they are not.
func (c *Connector) Address() string { return c.hook.ingress.Address() }

// take makes an event of one payload durable.
type take func(ctx context.Context, deliver message.Deliver, kind string, payload json.RawMessage) error

// A receiver takes events that Slack posts.
type receiver struct {
	ingress ingress.Listener
	listen  string // HOST:PORT; "": events come over a socket
	secret  string // for signing
	log     *slog.Logger
	take    take
}

// serve takes events that Slack posts, until ctx ends.
func (h *receiver) serve(ctx context.Context, deliver message.Deliver) error {
	busy := make(chan struct{}, maxRequests)
	return h.ingress.Serve(ctx, h.listen, func(w http.ResponseWriter, r *http.Request) {
		select {
		case busy <- struct{}{}:
			defer func() { <-busy }()
			h.posted(w, r, deliver)
		default:
			http.Error(w, "too many requests at once", http.StatusServiceUnavailable)
		}
	}, nil)
}

// posted takes one request. Slack wants an answer within 3 seconds, and posts
// again what got none.
func (h *receiver) posted(w http.ResponseWriter, r *http.Request, deliver message.Deliver) {
	body, status := h.authentic(w, r)
	if status != http.StatusOK {
		h.log.Debug("a request was refused", "status", status, "remote", r.RemoteAddr)
		http.Error(w, http.StatusText(status), status)
		return
	}

	kind, payload := "events_api", json.RawMessage(body)
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		var ok bool
		if kind, payload, ok = fromForm(body); !ok {
			http.Error(w, "not a form of Slack's", http.StatusBadRequest)
			return
		}
	}

	var hello struct {
		Type      string `json:"type"`
		Challenge string `json:"challenge"`
	}
	if err := json.Unmarshal(payload, &hello); err != nil {
		http.Error(w, "not JSON", http.StatusBadRequest)
		return
	}
	if hello.Type == "url_verification" {
		w.Header().Set("Content-Type", "text/plain")
		io.WriteString(w, hello.Challenge)
		return
	}

	err := h.take(r.Context(), deliver, kind, payload)
	if err == nil {
		w.WriteHeader(http.StatusOK)
		return
	}

	chat.Refuse(w, err)
	h.log.Warn("event not accepted; Slack will post it again", "err", err)
}

// authentic reads a body that Slack signed within the last minutes.
func (h *receiver) authentic(w http.ResponseWriter, r *http.Request) (body []byte, status int) {
	stamp, signature := r.Header.Get("X-Slack-Request-Timestamp"), r.Header.Get("X-Slack-Signature")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	sum, hexErr := hex.DecodeString(strings.TrimPrefix(signature, "v0="))
	switch {
	case r.URL.Path != "/slack":
		return nil, http.StatusNotFound
	case r.Method != http.MethodPost:
		return nil, http.StatusMethodNotAllowed
	case err != nil, hexErr != nil, !strings.HasPrefix(signature, "v0="), len(sum) != sha256.Size:
		return nil, http.StatusUnauthorized
	case time.Since(time.Unix(seconds, 0)).Abs() > replayWindow:
		return nil, http.StatusForbidden
	case r.ContentLength > maxBody:
		return nil, http.StatusRequestEntityTooLarge
	}

	body, err = h.ingress.Body(w, r, maxBody)
	if err != nil {
		return nil, http.StatusBadRequest
	}
	if len(body) > maxBody {
		return nil, http.StatusRequestEntityTooLarge
	}
	if !hmac.Equal(sum, sign(h.secret, stamp, body)) {
		return nil, http.StatusUnauthorized
	}

	return body, http.StatusOK
}

func sign(secret, stamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("v0:" + stamp + ":"))
	mac.Write(body)
	return mac.Sum(nil)
}

// fromForm reads a posted form: a pressed button, or a slash command.
func fromForm(body []byte) (kind string, payload json.RawMessage, ok bool) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return "", nil, false
	}
	if p := form.Get("payload"); p != "" {
		return "interactive", json.RawMessage(p), true
	}
	if form.Get("command") == "" {
		return "", nil, false
	}

	flat := map[string]string{}
	for k := range form {
		flat[k] = form.Get(k)
	}
	payload, err = json.Marshal(flat)

	return "slash_commands", payload, err == nil
}
