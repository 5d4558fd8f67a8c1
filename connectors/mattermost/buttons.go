package mattermost

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"daycare/connectors/chat"
	"daycare/connectors/format"
	"daycare/connectors/ingress"
	"daycare/engine/message"
)

// maxPressed is how large the request of a pressed button may be, in bytes.
const maxPressed = 64 << 10

// withButtons is a connector whose server can reach daycare.
type withButtons struct{ *Connector }

// buttonSecret proves that a request is the server's, which keeps it from the users. It
// follows from the token, so there is nothing to set and nothing to forget.
func buttonSecret(token, id string) string {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte("daycare buttons of " + id))
	return hex.EncodeToString(mac.Sum(nil))
}

// Card shows a question with buttons under it.
func (c *withButtons) Card(ctx context.Context, to message.Address, key, text string, choices []chat.Choice) (string, error) {
	channel, err := c.rooms.channel(ctx, to.ChannelID)
	if err != nil {
		return "", err
	}
	var actions []map[string]any
	for i, k := range choices {
		actions = append(actions, map[string]any{"id": fmt.Sprint("choice", i), "type": "button", "name": k.Label,
			"integration": map[string]any{"url": c.o.Buttons.URL, "context": map[string]string{"secret": c.hook.secret,
				"choice": k.Data}}})
	}

	return c.once(ctx, key, true, post{Channel: channel, Root: to.ThreadID,
		Props: map[string]any{"attachments": []map[string]any{{"text": format.Mattermost(text), "actions": actions}}}}, nil)
}

// Settle replaces a card by a text.
func (c *withButtons) Settle(ctx context.Context, _ message.Address, remoteID, text string) error {
	return c.api.call(ctx, "update a card", http.MethodPut, "/posts/"+remoteID+"/patch",
		map[string]any{"props": map[string]any{"attachments": []map[string]any{{"text": format.Mattermost(text)}}}}, nil)
}

// Address is where pressed buttons are taken, HOST:PORT; "" while they are not.
func (c *Connector) Address() string {
	if c.hook == nil {
		return ""
	}
	return c.hook.ingress.Address()
}

// A receiver takes pressed buttons.
type receiver struct {
	listen, secret string
	log            *slog.Logger
	ingress        ingress.Listener
	answer         func(ctx context.Context, from message.Address, data string) string
}

// serve takes pressed buttons until ctx ends.
func (h *receiver) serve(ctx context.Context) error {
	return h.ingress.Serve(ctx, h.listen, h.pressed, nil)
}

// pressed takes one request. A button that is pressed twice, or a request that is posted
// again, finds its approval answered.
func (h *receiver) pressed(w http.ResponseWriter, r *http.Request) {
	var p struct {
		User    string `json:"user_id"`
		Channel string `json:"channel_id"`
		Context struct {
			Secret string `json:"secret"`
			Choice string `json:"choice"`
		} `json:"context"`
	}
	body, status := h.read(w, r)
	if status == http.StatusOK && json.Unmarshal(body, &p) != nil {
		status = http.StatusBadRequest
	}
	if status == http.StatusOK && subtle.ConstantTimeCompare([]byte(p.Context.Secret), []byte(h.secret)) != 1 {
		status = http.StatusUnauthorized
	}
	if status != http.StatusOK {
		h.log.Debug("a request was refused", "status", status, "remote", r.RemoteAddr)
		http.Error(w, http.StatusText(status), status)
		return
	}

	text := h.answer(r.Context(), message.Address{ChannelID: p.Channel, UserID: p.User}, p.Context.Choice)
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(map[string]string{"ephemeral_text": text}); err != nil {
		h.log.Debug("cannot answer a pressed button", "err", err)
	}
}

func (h *receiver) read(w http.ResponseWriter, r *http.Request) (body []byte, status int) {
	switch {
	case r.Method != http.MethodPost:
		return nil, http.StatusMethodNotAllowed
	case !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json"):
		return nil, http.StatusUnsupportedMediaType
	case r.ContentLength > maxPressed:
		return nil, http.StatusRequestEntityTooLarge
	}
	body, err := h.ingress.Body(w, r, maxPressed)
	switch {
	case err != nil:
		return nil, http.StatusBadRequest
	case len(body) > maxPressed:
		return nil, http.StatusRequestEntityTooLarge
	}

	return body, http.StatusOK
}
