package whatsapp

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"daycare/connectors/chat"
	"daycare/connectors/ingress"
	"daycare/engine/message"
)

// Limits of the listener.
const (
	maxBody     = 3 << 20 // bytes: what Meta posts at most
	maxRequests = 32      // at once
)

// A receiver takes what Meta posts.
type receiver struct {
	ingress ingress.Listener
	listen  string // HOST:PORT
	secret  string // that Meta signs with
	verify  string // that it says when it asks whether the address is ours
	log     *slog.Logger
	take    func(ctx context.Context, deliver message.Deliver, p posted) error
	order   sync.Mutex // held while something is taken
}

// serve takes what Meta posts, until ctx ends. What is not answered with 200 it posts again,
// for a week.
func (h *receiver) serve(ctx context.Context, deliver message.Deliver) error {
	busy := make(chan struct{}, maxRequests)
	return h.ingress.Serve(ctx, h.listen, func(w http.ResponseWriter, r *http.Request) {
		select {
		case busy <- struct{}{}:
			defer func() { <-busy }()
			h.handle(w, r, deliver)
		default:
			http.Error(w, "too many requests at once", http.StatusServiceUnavailable)
		}
	}, nil)
}

func (h *receiver) handle(w http.ResponseWriter, r *http.Request, deliver message.Deliver) {
	if r.URL.Path == "/whatsapp" && r.Method == http.MethodGet {
		h.challenge(w, r)
		return
	}
	p, status := h.authentic(w, r)
	if status != http.StatusOK {
		h.log.Debug("a request was refused", "status", status, "remote", r.RemoteAddr)
		http.Error(w, http.StatusText(status), status)
		return
	}

	h.order.Lock()
	err := h.take(r.Context(), deliver, p)
	h.order.Unlock()
	if err == nil {
		w.WriteHeader(http.StatusOK)
		return
	}

	h.log.Warn("message not accepted; Meta will post it again", "err", err)
	chat.Refuse(w, err)
}

// challenge answers Meta's question whether the address is ours.
func (h *receiver) challenge(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("hub.mode") != "subscribe" || subtle.ConstantTimeCompare([]byte(q.Get("hub.verify_token")), []byte(h.verify)) != 1 {
		http.Error(w, http.StatusText(http.StatusForbidden), http.StatusForbidden)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	io.WriteString(w, q.Get("hub.challenge"))
}

// authentic reads a body that Meta signed. Meta signs no time: what is posted again is
// dropped by the id of its messages, and old messages are not read.
func (h *receiver) authentic(w http.ResponseWriter, r *http.Request) (p posted, status int) {
	hexed, signed := strings.CutPrefix(r.Header.Get("X-Hub-Signature-256"), "sha256=")
	sum, err := hex.DecodeString(hexed)
	switch {
	case r.URL.Path != "/whatsapp":
		return p, http.StatusNotFound
	case r.Method != http.MethodPost:
		return p, http.StatusMethodNotAllowed
	case err != nil, !signed, len(sum) != sha256.Size:
		return p, http.StatusUnauthorized
	case r.ContentLength > maxBody:
		return p, http.StatusRequestEntityTooLarge
	}

	body, err := h.ingress.Body(w, r, maxBody)
	switch {
	case err != nil:
		return p, http.StatusBadRequest
	case len(body) > maxBody:
		return p, http.StatusRequestEntityTooLarge
	case !hmac.Equal(sum, sign(h.secret, body)):
		return p, http.StatusUnauthorized
	case json.Unmarshal(body, &p) != nil:
		return p, http.StatusBadRequest
	}

	return p, http.StatusOK
}

func sign(secret string, body []byte) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return mac.Sum(nil)
}
