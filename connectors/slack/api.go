package slack

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"daycare/connectors/chat"
)

// An api calls the methods of the Web API.
type api struct {
	*chat.Client
	secrets Secrets
}

func newAPI(base string, s Secrets) *api {
	return &api{chat.NewClient(cmp.Or(base, officialAPI), s.Bot, s.App, s.Signing), s}
}

// An apiError is Slack's no: a word such as channel_not_found.
type apiError struct {
	Method     string
	Word       string
	RetryAfter time.Duration
}

func (e *apiError) Error() string { return fmt.Sprintf("slack %s: %s", e.Method, e.Word) }

// is reports whether err is a no with one of these words.
func is(err error, words ...string) bool {
	var no *apiError
	return errors.As(err, &no) && slices.Contains(words, no.Word)
}

// call calls a method with JSON parameters as the bot.
func (a *api) call(ctx context.Context, method string, params, result any) error {
	body, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("encode %s: %w", method, err)
	}

	return a.post(ctx, method, a.secrets.Bot, "application/json; charset=utf-8", bytes.NewReader(body), result)
}

// form calls a method that takes no JSON.
func (a *api) form(ctx context.Context, method string, params url.Values, result any) error {
	return a.post(ctx, method, a.secrets.Bot, "application/x-www-form-urlencoded", strings.NewReader(params.Encode()), result)
}

func (a *api) post(ctx context.Context, method, token, media string, body io.Reader, result any) error {
	got, err := a.Do(ctx, chat.Call{Name: method, Path: "/" + method, Bearer: token, Media: media, Body: body})
	switch {
	case err != nil:
		return err
	case got.Status == http.StatusTooManyRequests:
		return &apiError{Method: method, Word: "ratelimited", RetryAfter: max(got.RetryAfter, time.Second)}
	case got.Status != http.StatusOK:
		return fmt.Errorf("call %s: slack answers %d %s", method, got.Status, http.StatusText(got.Status))
	}

	var answer struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
	}
	if err := json.Unmarshal(got.Body, &answer); err != nil {
		return fmt.Errorf("read answer of %s: not JSON", method)
	}
	if !answer.OK {
		return &apiError{Method: method, Word: a.Redact(answer.Error)}
	}

	return got.Read(method, result)
}

// download opens a file.
func (a *api) download(ctx context.Context, address string) (io.ReadCloser, error) {
	if !a.Owns(address, ".slack.com") {
		return nil, errors.New("download file: its address is not Slack's")
	}

	return a.Download(ctx, address, a.secrets.Bot)
}
