package discord

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"daycare/connectors/chat"
	"daycare/engine/lazyregexp"
	"daycare/engine/message"
)

// An api calls the REST API, within its rate limits: what is known to be refused is not
// called, because Discord locks out who is refused too often.
type api struct {
	*chat.Client
	token string

	mu     sync.Mutex
	closed map[string]time.Time // when a route opens again; "" is all of them
}

func newAPI(base, token string) *api {
	return &api{Client: chat.NewClient(cmp.Or(base, officialAPI), token), token: token, closed: map[string]time.Time{}}
}

// An apiError is Discord's no.
type apiError struct {
	Name       string
	Status     int
	Code       int // of Discord; 0: none
	Text       string
	RetryAfter time.Duration
}

func (e *apiError) Error() string {
	return fmt.Sprintf("discord %s: %d %s", e.Name, e.Status, e.Text)
}

// Codes of Discord's errors.
const (
	unknownChannel = 10003
	hasThread      = 160004 // the message has a thread already
)

// status reports whether err is a no with one of these HTTP statuses.
func status(err error, any ...int) bool {
	var no *apiError
	return errors.As(err, &no) && slices.Contains(any, no.Status)
}

// code reports whether err is a no with this code of Discord's.
func code(err error, is int) bool {
	var no *apiError
	return errors.As(err, &no) && no.Code == is
}

// A request is one call. Name says what it does, for errors: a path may have a token in it.
type request struct {
	name, method, path string
	params             any // nil: none
	files              []message.File
}

// call makes a call and reads its result.
func (a *api) call(ctx context.Context, r request, result any) error {
	route := r.method + " " + routeOf(r.path)
	if wait := a.wait(route); wait > 0 {
		return &apiError{Name: r.name, Status: http.StatusTooManyRequests, Text: "rate limit", RetryAfter: wait}
	}
	body, media, err := r.body()
	if err != nil {
		return err
	}
	got, err := a.Do(ctx, chat.Call{Name: r.name, Method: r.method, Path: r.path, Media: media, Body: body,
		Header: http.Header{"Authorization": {"Bot " + a.token}, "User-Agent": {"DiscordBot (daycare, 1)"}}})
	if err != nil {
		return err
	}

	if got.Header.Get("X-RateLimit-Remaining") == "0" {
		a.close(route, seconds(got.Header.Get("X-RateLimit-Reset-After")))
	}
	if got.Status/100 != 2 {
		return a.refusal(r, route, got)
	}

	return got.Read(r.name, result)
}

// refusal is Discord's no as an error.
func (a *api) refusal(r request, route string, got chat.Answer) error {
	var no struct {
		Code       int     `json:"code"`
		Message    string  `json:"message"`
		RetryAfter float64 `json:"retry_after"`
		Global     bool    `json:"global"`
	}
	if err := json.Unmarshal(got.Body, &no); err != nil || no.Message == "" {
		no.Message = http.StatusText(got.Status) // a proxy's page
	}
	e := &apiError{Name: r.name, Status: got.Status, Code: no.Code, Text: a.Redact(no.Message)}
	if got.Status == http.StatusTooManyRequests {
		e.RetryAfter = max(time.Duration(no.RetryAfter*float64(time.Second)), got.RetryAfter, 50*time.Millisecond)
		if no.Global {
			route = ""
		}
		a.close(route, e.RetryAfter)
	}

	return e
}

// body encodes the parameters, and files beside them.
func (r request) body() (io.Reader, string, error) {
	if r.params == nil && len(r.files) == 0 {
		return nil, "", nil
	}
	data, err := json.Marshal(r.params)
	if err != nil {
		return nil, "", fmt.Errorf("encode %s: %w", r.name, err)
	}
	if len(r.files) == 0 {
		return bytes.NewReader(data), "application/json", nil
	}
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	err = form.WriteField("payload_json", string(data))
	for i, f := range r.files {
		if err == nil {
			err = attach(form, i, f)
		}
	}
	if err == nil {
		err = form.Close()
	}

	return &b, form.FormDataContentType(), err
}

func attach(form *multipart.Writer, i int, f message.File) error {
	content, err := os.Open(f.Path)
	if err != nil {
		return &message.NotSent{Final: true, Err: fmt.Errorf("open file %s to send: %w", f.Name, err)}
	}
	defer content.Close()
	part, err := form.CreateFormFile(fmt.Sprintf("files[%d]", i), f.Name)
	if err != nil {
		return err
	}
	_, err = io.Copy(part, content)

	return err
}

// wait is how long a route is closed.
func (a *api) wait(route string) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return max(time.Until(a.closed[route]), time.Until(a.closed[""]))
}

// close notes that nothing is accepted for a while.
func (a *api) close(route string, pause time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.closed, func(_ string, until time.Time) bool { return time.Now().After(until) })
	a.closed[route] = time.Now().Add(pause)
}

func seconds(text string) time.Duration {
	n, _ := strconv.ParseFloat(text, 64)
	return time.Duration(n * float64(time.Second))
}

var minorID = lazyregexp.New(`(/[a-z]+)/[0-9]{15,20}`)

// routeOf is a path as rate limits have it: apart for each channel, and the same for all
// that is in one.
func routeOf(path string) string {
	path, _, _ = strings.Cut(path, "?")
	if strings.HasPrefix(path, "/channels/") {
		first, rest, ok := strings.Cut(path[len("/channels/"):], "/")
		if !ok {
			return "/channels/id"
		}
		return "/channels/" + first + minorID.ReplaceAllString("/"+rest, "$1/id")
	}

	return path
}

// download opens an attachment. It goes to Discord alone, whatever address a message names.
func (a *api) download(ctx context.Context, address string) (io.ReadCloser, error) {
	if !a.Owns(address, ".discordapp.com", ".discordapp.net") {
		return nil, errors.New("download file: its address is not Discord's")
	}

	return a.Download(ctx, address, "")
}
