package matrix

import (
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

// An api calls the client-server API of a homeserver.
type api struct {
	*chat.Client
	token string
}

const client = "/_matrix/client/v3"

// An apiError is the homeserver's no.
type apiError struct {
	Name       string
	Status     int
	Code       string        `json:"errcode"`
	Text       string        `json:"error"`
	RetryAfter time.Duration `json:"-"`
	Millis     int64         `json:"retry_after_ms"`
}

func (e *apiError) Error() string {
	return fmt.Sprintf("matrix %s: %d %s: %s", e.Name, e.Status, e.Code, e.Text)
}

// is reports whether err is a no with one of these codes.
func is(err error, codes ...string) bool {
	var no *apiError
	return errors.As(err, &no) && slices.Contains(codes, no.Code)
}

// A call is one request.
type call struct {
	name, method, path string
	query              url.Values
	body               any       // as JSON; nil: none
	raw                io.Reader // instead of body
	media              string    // of raw
	within             time.Duration
}

// path is an address below the API, its parts escaped.
func path(base string, parts ...string) string {
	for _, p := range parts {
		base += "/" + url.PathEscape(p)
	}
	return base
}

// do makes a call and reads its result.
func (a *api) do(ctx context.Context, c call, result any) (err error) {
	send := chat.Call{Name: c.name, Method: c.method, Path: c.path, Bearer: a.token, Media: c.media, Body: c.raw, Within: c.within}
	if c.body != nil {
		if send, err = send.With(c.body); err != nil {
			return err
		}
	}
	if len(c.query) > 0 {
		send.Path += "?" + c.query.Encode()
	}
	got, err := a.Do(ctx, send)
	if err != nil {
		return err
	}
	if got.Status != http.StatusOK {
		return a.refused(c.name, got)
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(got.Body, result); err != nil {
		return fmt.Errorf("read answer of %s: not the JSON that was expected", c.name)
	}

	return nil
}

func (a *api) refused(name string, got chat.Answer) error {
	no := &apiError{}
	_ = json.Unmarshal(got.Body, no) // a proxy's page is none
	no.Name, no.Status, no.Text = name, got.Status, a.Redact(no.Text)
	if no.Code == "" {
		no.Code, no.Text = "M_UNKNOWN", http.StatusText(no.Status)
	}
	no.RetryAfter = cmp.Or(got.RetryAfter, time.Duration(no.Millis)*time.Millisecond)

	return no
}

// judge says what the engine is to do about an error.
func judge(err error) error {
	var no *apiError
	if !errors.As(err, &no) {
		return err
	}

	return chat.Judge(err, no.Status, no.RetryAfter)
}

// download opens a file by its mxc:// address.
func (a *api) download(ctx context.Context, address string) (io.ReadCloser, error) {
	server, id, ok := strings.Cut(strings.TrimPrefix(address, "mxc://"), "/")
	if !strings.HasPrefix(address, "mxc://") || !ok || server == "" || id == "" {
		return nil, errors.New("download file: not an mxc:// address")
	}
	at := path("", server, id)
	body, err := a.Download(ctx, a.Base+"/_matrix/client/v1/media/download"+at, a.token)
	if err != nil { // a server from before media had to be authenticated
		body, err = a.Download(ctx, a.Base+"/_matrix/media/v3/download"+at, a.token)
	}

	return body, err
}
