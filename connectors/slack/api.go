package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	callTime    = 30 * time.Second
	maxResponse = 16 << 20 // bytes
)

// An api calls the methods of the Web API.
type api struct {
	base    string
	secrets Secrets
	client  *http.Client
}

func newAPI(base string, s Secrets) *api {
	if base == "" {
		base = officialAPI
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	// A redirect would carry the token to somebody else.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &api{base: strings.TrimRight(base, "/"), secrets: s, client: &http.Client{Transport: t, CheckRedirect: stay}}
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
	if !errors.As(err, &no) {
		return false
	}
	for _, w := range words {
		if no.Word == w {
			return true
		}
	}
	return false
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
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.base+"/"+method, body)
	if err != nil {
		return fmt.Errorf("call %s: %w", method, err)
	}
	req.Header.Set("Content-Type", media)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := a.client.Do(req)
	if err != nil {
		return fmt.Errorf("call %s: %w", method, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusTooManyRequests {
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return &apiError{Method: method, Word: "ratelimited", RetryAfter: time.Duration(max(seconds, 1)) * time.Second}
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("call %s: slack answers %d %s", method, resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
	if err != nil {
		return fmt.Errorf("read answer of %s: %w", method, err)
	}
	var answer struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return fmt.Errorf("read answer of %s: not JSON", method)
	}
	if !answer.OK {
		return &apiError{Method: method, Word: a.clean(answer.Error)}
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(data, result); err != nil {
		return fmt.Errorf("read result of %s: %w", method, err)
	}
	return nil
}

// clean takes our secrets out of what somebody else wrote.
func (a *api) clean(s string) string {
	for _, secret := range []string{a.secrets.Bot, a.secrets.App, a.secrets.Signing} {
		if secret != "" {
			s = strings.ReplaceAll(s, secret, "[redacted]")
		}
	}
	return s
}

// download opens a file. The token goes to Slack and nowhere else, whatever
// address an event names.
func (a *api) download(ctx context.Context, address string) (io.ReadCloser, error) {
	u, err := url.Parse(address)
	base, _ := url.Parse(a.base)
	slacks := u != nil && u.Scheme == "https" && (u.Hostname() == "files.slack.com" || strings.HasSuffix(u.Hostname(), ".slack.com"))
	if err != nil || !slacks && u.Host != base.Host {
		return nil, errors.New("download file: its address is not Slack's")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("download file: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+a.secrets.Bot)
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("download file: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, fmt.Errorf("download file: slack answers %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	return resp.Body, nil
}
