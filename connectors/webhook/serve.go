package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"daycare/connectors/ingress"
	"daycare/engine/disk"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/plain"
)

// serve answers one request. Whatever goes wrong in it ends with it.
func (c *Connector) serve(w http.ResponseWriter, r *http.Request, deliver message.Deliver) {
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("panic in a webhook request", "err", p, "stack", string(debug.Stack()))
			reply(w, &problem{status: http.StatusInternalServerError, code: "internal", message: "the request failed"})
		}
	}()

	in, refused := c.read(w, r)
	if refused != nil {
		level := slog.LevelInfo
		if in.From.ChannelID == "" { // scanners; they must not fill the log
			level = slog.LevelDebug
		}
		c.log.Log(r.Context(), level, "webhook request refused", "status", refused.status, "code", refused.code,
			"hook", in.From.ChannelID, "remote", r.RemoteAddr)
		reply(w, refused)
		return
	}

	select { // a place is for those who proved who they are
	case c.busy <- struct{}{}:
		defer func() { <-c.busy }()
	default:
		reply(w, crowded)
		return
	}

	receipt, err := deliver(r.Context(), in)
	if err != nil {
		p := undelivered(err)
		c.log.Warn("webhook message not accepted", "status", p.status, "hook", in.From.ChannelID, "err", err)
		reply(w, p)
		return
	}

	c.log.Debug("webhook message accepted", "hook", in.From.ChannelID, "agent", receipt.Agent, "item",
		receipt.Item, "duplicate", receipt.Duplicate)
	respond(w, http.StatusAccepted, map[string]any{"item": receipt.Item, "agent": receipt.Agent, "duplicate": receipt.Duplicate})
}

// read makes a message of a request, or says why not. Nothing of the body is
// looked at before its signature was found good.
func (c *Connector) read(w http.ResponseWriter, r *http.Request) (in message.Incoming, refused *problem) {
	id, ok := strings.CutPrefix(r.URL.Path, "/hooks/")
	if !ok {
		return in, notFound
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return in, &problem{status: http.StatusMethodNotAllowed, code: "method_not_allowed", message: "a hook accepts POST only"}
	}

	h, known := c.hooks[id]
	if !known {
		h = c.decoy
	}
	in.From = message.Address{Connector: c.id, ChannelID: h.ID, UserID: webhookUserID}
	body, delivery, refused := c.authentic(w, r, h)
	switch {
	case refused != nil && refused.status == http.StatusUnauthorized && !known:
		return in, notFound
	case refused != nil:
		return in, refused
	case !known:
		return in, notFound // cannot be: nobody knows the decoy's secret
	}

	if in.Text, refused = h.text(r, body); refused != nil {
		return in, refused
	}
	in.Text = plain.Readable(in.Text)
	in.Agent = h.AgentID
	in.Dedupe = c.id + ":" + h.ID + "/" + delivery
	in.Context = message.Context{MessageID: delivery, Sender: h.ID}
	in.Untrusted = true
	if h.Callback != "" { // without one the agent's own descriptor says where answers go
		in.Route = &message.Address{Connector: c.id, ChannelID: h.ID}
	}

	return in, nil
}

// authentic reads the body and proves who sent it.
func (c *Connector) authentic(w http.ResponseWriter, r *http.Request, h *hook) (body []byte, delivery string, refused *problem) {
	if r.ContentLength > maxBody {
		return nil, "", oversized(w, r)
	}
	claimed, no := readClaim(r.Header)
	if no != nil {
		return nil, "", no.problem()
	}

	body, err := c.ingress.Body(w, r, maxBody)
	switch {
	case errors.Is(err, ingress.ErrSlow):
		return nil, "", &problem{status: http.StatusRequestTimeout, code: "too_slow", message: "the body took longer than 5 seconds"}
	case errors.Is(err, ingress.ErrCrowded):
		return nil, "", crowded
	case err != nil:
		return nil, "", &problem{status: http.StatusBadRequest, code: "bad_request", message: "the body is incomplete"}
	case len(body) > maxBody:
		return nil, "", oversized(w, r)
	}

	now, secret := time.Now(), c.secret(h.SecretEnv)
	if no := claimed.check(secret, body, now); no != nil {
		return nil, "", no.problem()
	}
	delivery = claimed.delivery(secret, body)
	if claimed.scheme.timestamp != "" {
		refused = c.replayed(r.Context(), sha256.Sum256([]byte(h.ID+"\n"+string(claimed.content(body)))), delivery, now)
	}

	return body, delivery, refused
}

// replayed refuses a signature that was used before with another delivery id, here or on another
// machine that received before this one.
func (c *Connector) replayed(ctx context.Context, content [sha256.Size]byte, delivery string, now time.Time) *problem {
	first := c.used.first(content, delivery, now)
	if first && c.once != nil {
		before, err := c.once(ctx, hex.EncodeToString(content[:]), delivery)
		if err != nil {
			c.log.Warn("whether a signature was used before is not known", "err", err)
			return unsure
		}
		first = before == delivery
	}
	if !first {
		return &problem{status: http.StatusForbidden, code: "replayed", message: "this signature was used before with another delivery id"}
	}

	return nil
}

// oversized refuses a body. It reads on for a moment, keeping nothing, because a
// sender that is still writing when the connection closes never sees the answer.
func oversized(w http.ResponseWriter, r *http.Request) *problem {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(drainTime))
	_, _ = io.CopyN(io.Discard, r.Body, drainBytes)
	w.Header().Set("Connection", "close")
	return &problem{status: http.StatusRequestEntityTooLarge, code: "too_large", message: "the body is over 1 MiB"}
}

func (h *hook) text(r *http.Request, body []byte) (string, *problem) {
	media, err := mediaType(r.Header.Get("Content-Type"), r.Header.Get("Content-Encoding"))
	if err != nil {
		return "", &problem{status: http.StatusUnsupportedMediaType, code: "unsupported_media_type", message: err.Error()}
	}
	if strings.TrimSpace(string(body)) == "" {
		return "", emptyText
	}

	text, err := render(h.template, media, body)
	switch {
	case errors.Is(err, inbox.ErrTooLarge):
		return "", undelivered(err)
	case errors.Is(err, errNotJSON):
		return "", &problem{status: http.StatusBadRequest, code: "bad_request", message: err.Error()}
	case err != nil:
		return "", &problem{status: http.StatusUnprocessableEntity, code: "template", message: err.Error()}
	case strings.TrimSpace(text) == "":
		return "", emptyText
	}

	return text, nil
}

// A problem is an answer that says no, in the form of the control API's.
type problem struct {
	status  int
	code    string
	message string
	after   time.Duration // to be offered again then; 0: not said
}

var (
	notFound  = &problem{status: http.StatusNotFound, code: "not_found", message: "no such hook"}
	unsure    = &problem{status: http.StatusServiceUnavailable, code: "replica_away", message: "send it again", after: time.Second}
	crowded   = &problem{status: http.StatusServiceUnavailable, code: "busy", message: "too many requests at once", after: time.Second}
	emptyText = &problem{status: http.StatusUnprocessableEntity, code: "empty", message: "the text is missing"}
)

func (r *refusal) problem() *problem {
	return &problem{status: r.status, code: r.code, message: r.reason}
}

// undelivered says to the sender why the engine did not take a message, and
// whether it should be offered again.
func undelivered(err error) *problem {
	var fast *message.TooFast
	switch {
	case errors.As(err, &fast):
		return &problem{status: http.StatusTooManyRequests, code: "too_fast",
			message: "too many requests to this hook in the last minute", after: time.Duration(fast.Seconds()) * time.Second}
	case errors.Is(err, inbox.ErrFull):
		return &problem{status: http.StatusTooManyRequests, code: "inbox_full", message: "too many messages are waiting", after: retryFull}
	case errors.Is(err, inbox.ErrTooLarge):
		return &problem{status: http.StatusRequestEntityTooLarge, code: "too_large", message: "the text is over 1 MiB"}
	case errors.Is(err, message.ErrUnknownAgent):
		return &problem{status: http.StatusNotFound, code: "unknown_agent", message: "the agent of this hook does not exist"}
	case errors.Is(err, disk.ErrFull):
		return &problem{status: http.StatusServiceUnavailable, code: "disk_full", message: "no space to store it", after: retryNoStorage}
	}

	return &problem{status: http.StatusServiceUnavailable, code: "unavailable", message: "it could not be stored", after: retryNoStorage}
}

func reply(w http.ResponseWriter, p *problem) {
	if p.after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(p.after/time.Second)))
	}
	respond(w, p.status, map[string]any{"error": map[string]string{"code": p.code, "message": p.message}})
}

func respond(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the sender is gone; nobody is left to tell
}
