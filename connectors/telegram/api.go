package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	callTime    = 30 * time.Second
	maxResponse = 16 << 20 // bytes of an answer
)

// An api calls the methods of the Bot API. The token is part of every address, so
// no address leaves this file: not in an error, not in a log line.
type api struct {
	base   string
	token  string
	client *http.Client
}

func newAPI(base, token string) *api {
	if base == "" {
		base = officialAPI
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	// A redirect would carry the token to somebody else.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &api{base: strings.TrimRight(base, "/"), token: token, client: &http.Client{Transport: t, CheckRedirect: stay}}
}

// An apiError is the Bot API's no.
type apiError struct {
	Method      string
	Code        int
	Description string
	RetryAfter  time.Duration
	MigrateTo   int64 // the group has this id now
}

func (e *apiError) Error() string {
	return fmt.Sprintf("telegram %s: %d %s", e.Method, e.Code, e.Description)
}

// is reports whether err is a no of this code, with one of these in its
// description (none: any).
func is(err error, code int, said ...string) bool {
	var no *apiError
	if !errors.As(err, &no) || no.Code != code {
		return false
	}
	for _, s := range said {
		if strings.Contains(strings.ToLower(no.Description), s) {
			return true
		}
	}
	return len(said) == 0
}

// call calls a method with JSON parameters and reads its result.
func (a *api) call(ctx context.Context, method string, params, result any) error {
	body, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("encode %s: %w", method, err)
	}
	return a.post(ctx, method, "application/json", bytes.NewReader(body), result)
}

// upload calls a method with a file beside its parameters.
func (a *api) upload(ctx context.Context, method string, params map[string]string, field, name string,
	content io.Reader, result any) error {
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	for k, v := range params {
		if err := form.WriteField(k, v); err != nil {
			return fmt.Errorf("encode %s: %w", method, err)
		}
	}
	part, err := form.CreateFormFile(field, name)
	if err == nil {
		_, err = io.Copy(part, content)
	}
	if err == nil {
		err = form.Close()
	}
	if err != nil {
		return fmt.Errorf("encode %s: %w", method, err)
	}
	return a.post(ctx, method, form.FormDataContentType(), &b, result)
}

func (a *api) post(ctx context.Context, method, media string, body io.Reader, result any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.base+"/bot"+a.token+"/"+method, body)
	if err != nil {
		return fmt.Errorf("call %s: the address of the Bot API cannot be used", method)
	}
	req.Header.Set("Content-Type", media)
	resp, err := a.client.Do(req)
	if err != nil {
		return fmt.Errorf("call %s: %w", method, a.clean(err))
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
	if err != nil {
		return fmt.Errorf("read answer of %s: %w", method, a.clean(err))
	}
	return a.read(method, resp.StatusCode, data, result)
}

// read makes a result or an error of an answer.
func (a *api) read(method string, status int, data []byte, result any) error {
	var answer struct {
		OK          bool            `json:"ok"`
		Result      json.RawMessage `json:"result"`
		Code        int             `json:"error_code"`
		Description string          `json:"description"`
		Parameters  struct {
			RetryAfter int   `json:"retry_after"`
			MigrateTo  int64 `json:"migrate_to_chat_id"`
		} `json:"parameters"`
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		if status == http.StatusOK {
			return fmt.Errorf("read answer of %s: not JSON", method)
		}
		answer.Code = status // a proxy's page
	}
	if !answer.OK {
		if answer.Code == 0 {
			answer.Code = status
		}
		if answer.Description == "" {
			answer.Description = http.StatusText(answer.Code)
		}
		return &apiError{Method: method, Code: answer.Code, Description: strings.ReplaceAll(answer.Description, a.token, "[redacted]"),
			RetryAfter: time.Duration(answer.Parameters.RetryAfter) * time.Second, MigrateTo: answer.Parameters.MigrateTo}
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(answer.Result, result); err != nil {
		return fmt.Errorf("read result of %s: %w", method, err)
	}
	return nil
}

// download opens a file by the path that getFile named.
func (a *api) download(ctx context.Context, path string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+"/file/bot"+a.token+"/"+path, nil)
	if err != nil {
		return nil, errors.New("download file: its path cannot be used")
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("download file: %w", a.clean(err))
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, fmt.Errorf("download file: %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	return resp.Body, nil
}

// clean takes the address out of a client's error.
func (a *api) clean(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		err = e.Err
	}
	if strings.Contains(err.Error(), a.token) {
		return errors.New(strings.ReplaceAll(err.Error(), a.token, "[redacted]"))
	}
	return err
}
