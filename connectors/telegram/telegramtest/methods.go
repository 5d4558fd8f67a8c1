package telegramtest

import (
	"bytes"
	"context"
	"encoding/json"
	"image"
	_ "image/png" // photos of tests
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

// ServeHTTP answers one call.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if file, ok := strings.CutPrefix(r.URL.Path, "/file/bot"+s.Token+"/files/"); ok {
		s.mu.Lock()
		content, ok := s.Files[file]
		s.mu.Unlock()
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Write(content)
		return
	}

	method, ok := strings.CutPrefix(r.URL.Path, "/bot"+s.Token+"/")
	if !ok {
		no(w, http.StatusUnauthorized, "Unauthorized", nil)
		return
	}

	fault := OK
	if s.Fault != nil {
		fault = s.Fault(method)
	}

	s.mu.Lock()
	s.calls[method]++
	calm := s.calm
	s.mu.Unlock()

	if refuses(s, w, r, fault, calm) {
		return
	}
	p, err := params(r)
	if err != nil {
		no(w, http.StatusBadRequest, "Bad Request: "+err.Error(), nil)
		return
	}
	answer := httptest.NewRecorder()
	s.method(r.Context(), answer, method, p, fault)
	deliver(w, answer, fault)
}

// refuses answers a call in the place of its method, if the fault has the method not run.
func refuses(s *Server, w http.ResponseWriter, r *http.Request, fault Fault, calm chan struct{}) bool {
	switch fault {
	case Broken:
		http.Error(w, "<html>bad gateway for "+r.URL.Path+"</html>", http.StatusBadGateway)
	case Busy:
		no(w, http.StatusTooManyRequests, "Too Many Requests: retry after "+s.Token,
			map[string]any{"retry_after": int(s.BusyFor / time.Second)})
	case Gone:
		no(w, http.StatusForbidden, "Forbidden: bot was blocked by the user", nil)
	case Conflict:
		no(w, http.StatusConflict, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running", nil)
	case Entities:
		no(w, http.StatusBadRequest, "Bad Request: can't parse entities: Unsupported start tag", nil)
	case Revoked:
		no(w, http.StatusUnauthorized, "Unauthorized", nil)
	case Forget:
		yes(w, map[string]any{})
	case Stall:
		<-calm
	default:
		return false
	}

	return true
}

// deliver sends an answer on its way, where it may be lost.
func deliver(w http.ResponseWriter, answer *httptest.ResponseRecorder, fault Fault) {
	body := answer.Body.Bytes()
	switch fault {
	case Drop:
		panic(http.ErrAbortHandler)
	case Half:
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.Write(body[:len(body)/2])
		panic(http.ErrAbortHandler)
	}

	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(answer.Code)
	w.Write(body)
}

// reactions are some of those that there are.
const reactions = "👍👎❤🔥🎉👏🙏👌🤔😁😢👀🤝💯"

func (s *Server) method(ctx context.Context, w http.ResponseWriter, method string, p map[string]string, fault Fault) {
	switch method {
	case "getMe":
		yes(w, map[string]any{"id": 777, "is_bot": true, "first_name": "Test", "username": "test_bot"})
	case "getUpdates":
		s.getUpdates(ctx, w, p, fault == Again)
	case "sendMessage", "sendPhoto", "sendDocument", "editMessageText":
		s.send(w, method, p)
	case "setWebhook", "deleteWebhook":
		s.setHook(p["url"], p["secret_token"])
		yes(w, true)
	case "getWebhookInfo":
		url, _ := s.Hook()
		yes(w, map[string]any{"url": url, "pending_update_count": s.Backlog()})
	case "getFile":
		s.mu.Lock()
		_, ok := s.Files[p["file_id"]]
		s.mu.Unlock()
		if !ok {
			no(w, http.StatusBadRequest, "Bad Request: file is too big", nil)
			return
		}
		yes(w, map[string]any{"file_id": p["file_id"], "file_path": "files/" + p["file_id"]})
	case "setMyCommands":
		var menu []struct{ Command string }
		_ = json.Unmarshal([]byte(p["commands"]), &menu)
		s.mu.Lock()
		s.menu = nil
		for _, k := range menu {
			s.menu = append(s.menu, k.Command)
		}
		s.mu.Unlock()
		yes(w, true)
	case "answerCallbackQuery":
		s.mu.Lock()
		s.answers = append(s.answers, p["text"])
		s.updates.touch()
		s.mu.Unlock()
		yes(w, true)
	case "setMessageReaction":
		var list []struct{ Type, Emoji string }
		if err := json.Unmarshal([]byte(p["reaction"]),
			&list); err != nil || len(list) != 1 || list[0].Type != "emoji" || !strings.Contains(reactions, list[0].Emoji) {
			no(w, http.StatusBadRequest, "Bad Request: REACTION_INVALID", nil)
			return
		}

		s.mu.Lock()
		s.reactions[p["chat_id"]+"/"+p["message_id"]] = list[0].Emoji
		s.updates.touch()
		s.mu.Unlock()
		yes(w, true)
	case "sendChatAction":
		yes(w, true)
	default:
		no(w, http.StatusNotFound, "Not Found: method not found", nil)
	}
}

// ahead is how far beyond the newest update an offset may be: one that is further confirms nothing.
const ahead = 10

func (u *updates) beyond(offset int64) bool {
	n := len(u.waiting)
	return n > 0 && offset > u.waiting[n-1].id+ahead
}

// getUpdates: an offset confirms every update before it that was handed out.
func (s *Server) getUpdates(ctx context.Context, w http.ResponseWriter, p map[string]string, deaf bool) {
	offset, _ := strconv.ParseInt(p["offset"], 10, 64)
	limit, _ := strconv.Atoi(p["limit"])
	timeout, _ := strconv.Atoi(p["timeout"])
	if limit < 1 || limit > 100 {
		limit = 100
	}

	s.mu.Lock()
	s.polls++
	mine := s.polls
	if s.hook != "" {
		s.mu.Unlock()
		no(w, http.StatusConflict, "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to "+
			"delete the webhook first", nil)
		return
	}

	deaf = deaf || s.updates.beyond(offset)
	var left, confirmed []*entry
	for _, e := range s.updates.waiting {
		if deaf || !e.handed || e.id >= offset {
			left = append(left, e)
		} else {
			confirmed = append(confirmed, e)
		}
	}

	s.updates.waiting = left
	s.updates.touch() // and whoever asked before sees that somebody else does
	s.mu.Unlock()
	for _, e := range confirmed {
		e.told()
	}

	ctx, cancel := context.WithTimeout(ctx, time.Duration(timeout)*time.Second)
	defer cancel()
	ended := false
	s.Wait(ctx, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		ended = s.polls != mine
		return ended || len(s.updates.waiting) > 0
	})

	if ended {
		no(w, http.StatusConflict, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running", nil)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []any{}
	for _, e := range s.updates.waiting[:min(limit, len(s.updates.waiting))] {
		e.handed = true
		list = append(list, e.body)
	}

	yes(w, list)
}

func (s *Server) send(w http.ResponseWriter, method string, p map[string]string) {
	text := p["text"] + p["caption"]
	shown, limit := text, 4096
	if p["text"] == "" {
		limit = 1024
	}
	if p["parse_mode"] == "HTML" {
		var err error
		if shown, err = ParseHTML(text); err != nil {
			no(w, http.StatusBadRequest, "Bad Request: can't parse entities: "+err.Error(), nil)
			return
		}
	}
	shown = strings.TrimSpace(shown)
	switch {
	case p["chat_id"] == "404":
		no(w, http.StatusBadRequest, "Bad Request: chat not found", nil)
		return
	case p["chat_id"] == "-50":
		no(w, http.StatusBadRequest, "Bad Request: group chat was upgraded to a supergroup chat",
			map[string]any{"migrate_to_chat_id": -10050})
		return
	case method == "sendPhoto" && p["stretched"] != "":
		no(w, http.StatusBadRequest, "Bad Request: PHOTO_INVALID_DIMENSIONS", nil)
		return
	case shown == "" && p["file"] == "":
		no(w, http.StatusBadRequest, "Bad Request: message text is empty", nil)
		return
	case len(utf16.Encode([]rune(shown))) > limit:
		no(w, http.StatusBadRequest, "Bad Request: message is too long", nil)
		return
	}
	var reply struct {
		Message int64 `json:"message_id"`
	}
	_ = json.Unmarshal([]byte(p["reply_parameters"]), &reply)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids++
	m := Sent{Method: method, ID: s.ids, Chat: p["chat_id"], Thread: p["message_thread_id"], Text: shown, Source: text,
		Mode: p["parse_mode"], File: p["file"], At: time.Now(), Edits: p["message_id"]}
	if reply.Message != 0 {
		m.Reply = strconv.FormatInt(reply.Message, 10)
	}
	var ok bool
	if m.Buttons, ok = buttons(p["reply_markup"]); !ok {
		no(w, http.StatusBadRequest, "Bad Request: BUTTON_DATA_INVALID", nil)
		return
	}
	s.sent = append(s.sent, m)
	s.updates.touch()
	chat, _ := strconv.ParseInt(p["chat_id"], 10, 64)
	yes(w, map[string]any{"message_id": m.ID, "chat": map[string]any{"id": chat}, "text": shown})
}

// params reads parameters of either kind, each as a string or as JSON.
func params(r *http.Request) (map[string]string, error) {
	p := map[string]string{}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		if err := r.ParseMultipartForm(64 << 20); err != nil {
			return nil, err
		}
		for k, v := range r.MultipartForm.Value {
			p[k] = v[0]
		}

		for _, files := range r.MultipartForm.File {
			p["file"] = files[0].Filename
			if content, err := files[0].Open(); err == nil && stretched(content) {
				p["stretched"] = "true"
			}
		}
		return p, nil
	}

	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var raw map[string]json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&raw); err != nil {
		return nil, err
	}

	for k, v := range raw {
		var s string
		if json.Unmarshal(v, &s) != nil {
			s = string(v)
		}
		p[k] = s
	}

	return p, nil
}

// stretched reports whether a file is a picture that is no photo for Telegram, because of its sides.
func stretched(content io.ReadCloser) bool {
	defer content.Close()
	c, _, err := image.DecodeConfig(content)
	return err == nil && (c.Width+c.Height > 10_000 || max(c.Width, c.Height) > 20*min(c.Width, c.Height))
}

func yes(w http.ResponseWriter, result any) {
	json.NewEncoder(w).Encode(map[string]any{"ok": true, "result": result})
}

func no(w http.ResponseWriter, code int, description string, parameters map[string]any) {
	body := map[string]any{"ok": false, "error_code": code, "description": description}
	if parameters != nil {
		body["parameters"] = parameters
	}
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(body)
}

// buttons are the data of the buttons of a keyboard; false: one has too much.
func buttons(markup string) (all []string, ok bool) {
	var board struct {
		Rows [][]struct {
			Data string `json:"callback_data"`
		} `json:"inline_keyboard"`
	}
	_ = json.Unmarshal([]byte(markup), &board)
	for _, row := range board.Rows {
		for _, b := range row {
			if len(b.Data) > 64 {
				return nil, false
			}
			all = append(all, b.Data)
		}
	}

	return all, true
}
