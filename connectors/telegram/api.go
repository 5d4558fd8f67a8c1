package telegram

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"time"

	"daycare/connectors/chat"
)

// An api calls the methods of the Bot API. The token is part of every address.
type api struct {
	*chat.Client
	token string
}

func newAPI(base, token string) *api {
	return &api{chat.NewClient(cmp.Or(base, officialAPI), token), token}
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
		_ = form.WriteField(k, v) // into memory, as all of it
	}
	part, _ := form.CreateFormFile(field, name)
	if _, err := io.Copy(part, content); err != nil {
		return fmt.Errorf("encode %s: %w", method, err)
	}
	_ = form.Close()

	return a.post(ctx, method, form.FormDataContentType(), &b, result)
}

func (a *api) post(ctx context.Context, method, media string, body io.Reader, result any) error {
	answer, err := a.Do(ctx, chat.Call{Name: method, Path: "/bot" + a.token + "/" + method, Media: media, Body: body, Within: callTime})
	if err != nil {
		return err
	}

	return a.read(method, answer.Status, answer.Body, result)
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
		return &apiError{Method: method, Code: answer.Code, Description: a.Redact(answer.Description),
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
	return a.Download(ctx, a.Base+"/file/bot"+a.token+"/"+path, "")
}
