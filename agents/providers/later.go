package providers

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// ErrNotLater: a service has no API for requests that are answered later.
var ErrNotLater = errors.New("the service has no batch API that is known")

// LaterShare is what a request that is answered later costs, of its price.
const LaterShare = 0.5

// Later is the API of a vendor that answers many requests together, within a day and for less: the Message Batches of
// Anthropic, and the Batch API of OpenAI for Chat Completions and Responses.
//
// Source: platform.claude.com/docs, Message Batches; developers.openai.com/api/reference/resources/batches.
type Later struct {
	provider Provider
	remote   *Remote
	sign     func(http.Header, string)
	path     string // of the wire, as OpenAI names it: /v1/responses
}

// NewLater returns the API of a provider, not wrapped in anything. Errors: ErrNotLater.
func NewLater(ctx context.Context, p Provider) (*Later, error) {
	out, remote, err := prepared(ctx, p, asked())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.ID(), ErrNotLater)
	}
	l := &Later{provider: p, remote: remote, sign: out.Sign}
	switch p.Wire() {
	case "anthropic":
	case "openai", "responses":
		l.path = "/v1" + strings.TrimPrefix(out.URL, remote.Service.BaseURL)
	default:
		return nil, fmt.Errorf("%s: %w", p.ID(), ErrNotLater)
	}

	return l, nil
}

// asked is a request for where it does not matter which.
func asked() *Request { return &Request{Messages: []*Message{{Role: User, Parts: []Part{Text{"?"}}}}} }

// A LaterItem is a request of a batch.
type LaterItem struct {
	ID   string // unique in the batch: letters, digits, - and _, at most 64
	Body json.RawMessage
}

// Item makes a request an item.
func (l *Later) Item(ctx context.Context, id string, req *Request) (LaterItem, error) {
	out, _, err := prepared(ctx, l.provider, req)
	if err != nil {
		return LaterItem{}, err
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(out.Body.Bytes(), &members); err != nil {
		return LaterItem{}, fmt.Errorf("make request for %s: %w", l.provider.ID(), err)
	}
	delete(members, "stream")
	delete(members, "stream_options")
	body, err := json.Marshal(members)

	return LaterItem{id, body}, err
}

// A LaterState is how a batch stands.
type LaterState struct {
	ID    string
	Ended bool
	Done  int    // requests that have an answer
	Total int    // 0: not known yet
	Wrong string // why none of its requests was answered; ""
	At    time.Time
	Key   string // that it was handed in with; "" where the vendor keeps none

	files []string // with results
}

// Submit hands in a batch. key names it: Find looks for it after a kill.
func (l *Later) Submit(ctx context.Context, key string, items []LaterItem) (LaterState, error) {
	if l.path == "" {
		type one struct {
			ID     string          `json:"custom_id"`
			Params json.RawMessage `json:"params"`
		}
		all := make([]one, len(items))
		for i, it := range items {
			all[i] = one{it.ID, it.Body}
		}
		return l.state(l.call(ctx, http.MethodPost, "/v1/messages/batches", map[string]any{"requests": all}))
	}

	file, err := l.upload(ctx, items)
	if err != nil {
		return LaterState{}, err
	}
	return l.state(l.call(ctx, http.MethodPost, "/batches", map[string]any{"input_file_id": file, "endpoint": l.path,
		"completion_window": "24h", "metadata": map[string]string{"daycare": key}}))
}

// upload hands in the file of a batch, as OpenAI wants it.
func (l *Later) upload(ctx context.Context, items []LaterItem) (id string, err error) {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	err = form.WriteField("purpose", "batch")
	part, perr := form.CreateFormFile("file", "daycare.jsonl")
	if err = errors.Join(err, perr); err != nil {
		return "", err
	}
	encoder := json.NewEncoder(part)
	for _, it := range items {
		line := map[string]any{"custom_id": it.ID, "method": http.MethodPost, "url": l.path, "body": it.Body}
		if err := encoder.Encode(line); err != nil {
			return "", err
		}
	}
	if err := form.Close(); err != nil {
		return "", err
	}
	data, err := l.send(ctx, http.MethodPost, "/files", form.FormDataContentType(), &body)
	if err != nil {
		return "", err
	}

	return gjson.GetBytes(data, "id").Str, nil
}

// Look returns how a batch stands now.
func (l *Later) Look(ctx context.Context, id string) (LaterState, error) {
	return l.state(l.call(ctx, http.MethodGet, l.batches()+"/"+id, nil))
}

// Find lists batches that may be the one of a key: of n requests, handed in since a time. Where the vendor keeps the key it
// is exactly that one.
func (l *Later) Find(ctx context.Context, key string, since time.Time, n int) (found []LaterState, err error) {
	after := ""
	for {
		data, err := l.call(ctx, http.MethodGet, l.batches()+"?limit=100"+after, nil)
		if err != nil {
			return nil, err
		}
		older := false
		last := ""
		for _, one := range gjson.GetBytes(data, "data").Array() {
			s := l.stateOf(one)
			older, last = older || s.At.Before(since), s.ID
			if !s.At.Before(since) && (s.Key == key || l.path == "" && s.Total == n) {
				found = append(found, s)
			}
		}
		if older || last == "" || !gjson.GetBytes(data, "has_more").Bool() {
			return found, nil
		}
		if after = "&after=" + last; l.path == "" {
			after = "&after_id=" + last
		}
	}
}

func (l *Later) batches() string {
	if l.path == "" {
		return "/v1/messages/batches"
	}
	return "/batches"
}

// A LaterResult is what became of a request of a batch.
type LaterResult struct {
	ID     string
	Answer *Response // nil: none
	Err    error     // why
	Again  bool      // nothing was done for it, and it may be handed in again
}

// Results calls each with what became of each request of a batch that has ended, in any order.
func (l *Later) Results(ctx context.Context, s LaterState, each func(LaterResult) error) error {
	paths := []string{l.batches() + "/" + s.ID + "/results"}
	if l.path != "" {
		paths = nil
		for _, id := range s.files {
			paths = append(paths, "/files/"+id+"/content")
		}
	}
	for _, path := range paths {
		body, err := l.open(ctx, http.MethodGet, path, "", nil)
		if err != nil {
			return err
		}
		lines := bufio.NewScanner(body)
		lines.Buffer(nil, maxWhole)
		for lines.Scan() {
			if len(bytes.TrimSpace(lines.Bytes())) == 0 {
				continue
			}
			if err = each(l.result(ctx, gjson.ParseBytes(lines.Bytes()))); err != nil {
				break
			}
		}
		body.Close()
		if err := errors.Join(err, lines.Err()); err != nil {
			return fmt.Errorf("read results of %s: %w", s.ID, err)
		}
	}

	return nil
}

func (l *Later) result(ctx context.Context, v gjson.Result) (r LaterResult) {
	r.ID = v.Get("custom_id").Str
	wrong := func(again bool, code, message string) LaterResult {
		f := &Failure{Kind: Rejected, Provider: l.provider.ID(), Message: short(strings.Trim(code+": "+message, ": "))}
		r.Err, r.Again = f, again
		return r
	}
	answer := v.Get("result.message")
	if l.path == "" {
		switch kind := v.Get("result.type").Str; kind {
		case "succeeded":
		case "errored":
			e := v.Get("result.error.error")
			code := e.Get("type").Str
			return wrong(code != "invalid_request_error", code, e.Get("message").Str)
		default: // canceled, expired
			return wrong(true, kind, "")
		}
	} else {
		status := v.Get("response.status_code").Int()
		if e := v.Get("error"); e.IsObject() && status != http.StatusOK {
			return wrong(true, e.Get("code").Str, e.Get("message").Str)
		}
		if answer = v.Get("response.body"); status != http.StatusOK {
			again := status == http.StatusTooManyRequests || status >= 500
			return wrong(again, fmt.Sprint("status ", status), answer.Get("error.message").Str)
		}
	}

	r.Answer, r.Err = l.read(ctx, answer.Raw)
	return r
}

// read makes an answer in one piece a response.
func (l *Later) read(ctx context.Context, answer string) (*Response, error) {
	var c collector
	var r *Response
	var err error
	req := asked()
	for ev := range l.provider.Stream(context.WithValue(ctx, rehearsalKey{}, &rehearsal{answer: answer}), req) {
		switch ev := ev.(type) {
		case Complete:
			r = c.response(l.provider.ID(), req, ev)
		case Error:
			err = ev.Err
		default:
			c.add(ev)
		}
	}
	if r == nil && err == nil {
		err = &Failure{Kind: Broken, Provider: l.provider.ID(), Message: "the answer has no end"}
	}

	return r, err
}

// state reads the state of a batch from an answer.
func (l *Later) state(data []byte, err error) (LaterState, error) {
	if err != nil {
		return LaterState{}, err
	}
	s := l.stateOf(gjson.ParseBytes(data))
	if s.ID == "" {
		return s, &Failure{Kind: Rejected, Provider: l.provider.ID(), Message: "answered without the id of a batch: " + short(string(data))}
	}

	return s, nil
}

func (l *Later) stateOf(v gjson.Result) (s LaterState) {
	s.ID = v.Get("id").Str
	counts := v.Get("request_counts")
	if l.path == "" {
		s.At = v.Get("created_at").Time()
		s.Ended = v.Get("processing_status").Str == "ended"
		counts.ForEach(func(kind, n gjson.Result) bool {
			if s.Total += int(n.Int()); kind.Str != "processing" {
				s.Done += int(n.Int())
			}
			return true
		})
		return s
	}

	s.At, s.Key = time.Unix(v.Get("created_at").Int(), 0), v.Get("metadata.daycare").Str
	s.Done, s.Total = int(counts.Get("completed").Int()+counts.Get("failed").Int()), int(counts.Get("total").Int())
	for _, name := range []string{"output_file_id", "error_file_id"} {
		if id := v.Get(name).Str; id != "" {
			s.files = append(s.files, id)
		}
	}
	switch v.Get("status").Str {
	case "completed", "expired", "cancelled":
		s.Ended = true
	case "failed":
		s.Ended, s.Wrong = true, "refused"
		if why := v.Get("errors.data.0.message").Str; why != "" {
			s.Wrong = short(why)
		}
	}

	return s
}

// call sends JSON and returns the answer.
func (l *Later) call(ctx context.Context, method, path string, body any) ([]byte, error) {
	var in io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		in = bytes.NewReader(data)
	}

	return l.send(ctx, method, path, "application/json", in)
}

func (l *Later) send(ctx context.Context, method, path, kind string, body io.Reader) ([]byte, error) {
	out, err := l.open(ctx, method, path, kind, body)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	data, err := io.ReadAll(io.LimitReader(out, maxWhole))
	if err != nil {
		return nil, fmt.Errorf("read answer of %s: %w", l.provider.ID(), err)
	}

	return data, nil
}

// open makes one request. Errors: *Failure, or that of the connection.
func (l *Later) open(ctx context.Context, method, path, kind string, body io.Reader) (io.ReadCloser, error) {
	r := l.remote
	key := strings.TrimSpace(r.Service.Key())
	if key == "" && r.Own && len(r.Service.Headers) == 0 {
		return nil, &Failure{Kind: NoKey, Provider: r.Service.ID, Message: r.noKey()}
	}
	req, err := http.NewRequestWithContext(ctx, method, r.Service.BaseURL+path, body)
	if err != nil {
		return nil, &Failure{Kind: Rejected, Provider: r.Service.ID, Err: fmt.Errorf("make request: %w", err)}
	}
	req.Header = r.header(key, l.sign)
	req.Header.Set("Accept", "application/json")
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	x := &Exchange{Provider: r.Service.ID, Client: r.Service.HTTP, Secrets: r.secrets(key)}
	client := *r.Service.HTTP
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		return nil, x.broken(ctx, ctx, err)
	}
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated {
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
		return nil, x.refused(resp, string(text))
	}

	return resp.Body, nil
}
