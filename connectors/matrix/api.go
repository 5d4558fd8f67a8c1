package matrix

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

	"daycare/connectors/chat"
	"daycare/engine/message"
)

// An api calls the client-server API of a homeserver.
type api struct {
	*chat.Client
	token string
}

const (
	callTime    = 30 * time.Second
	maxResponse = 64 << 20 // bytes of an answer
	client      = "/_matrix/client/v3"
)

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
	if !errors.As(err, &no) {
		return false
	}
	for _, c := range codes {
		if no.Code == c {
			return true
		}
	}
	return false
}

// A call is one request.
type call struct {
	name, method, path string
	query              url.Values
	body               any       // as JSON
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
func (a *api) do(ctx context.Context, c call, result any) error {
	if c.within == 0 {
		c.within = callTime
	}
	ctx, cancel := context.WithTimeout(ctx, c.within)
	defer cancel()
	body, media := c.raw, c.media
	if body == nil && c.body != nil {
		data, err := json.Marshal(c.body)
		if err != nil {
			return fmt.Errorf("encode %s: %w", c.name, err)
		}
		body, media = bytes.NewReader(data), "application/json"
	}
	address := a.Base + c.path
	if len(c.query) > 0 {
		address += "?" + c.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, c.method, address, body)
	if err != nil {
		return fmt.Errorf("call %s: %w", c.name, a.Clean(err))
	}
	req.Header.Set("Authorization", "Bearer "+a.token)
	if media != "" {
		req.Header.Set("Content-Type", media)
	}

	resp, err := a.HTTP.Do(req)
	if err != nil {
		return fmt.Errorf("call %s: %w", c.name, a.Clean(err))
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
	if err != nil {
		return fmt.Errorf("read answer of %s: %w", c.name, a.Clean(err))
	}
	if resp.StatusCode != http.StatusOK {
		return a.refused(c.name, resp, data)
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(data, result); err != nil {
		return fmt.Errorf("read answer of %s: not the JSON that was expected", c.name)
	}

	return nil
}

func (a *api) refused(name string, resp *http.Response, data []byte) error {
	no := &apiError{}
	_ = json.Unmarshal(data, no) // a proxy's page is none
	no.Name, no.Status, no.Text = name, resp.StatusCode, a.Redact(no.Text)
	if no.Code == "" {
		no.Code, no.Text = "M_UNKNOWN", http.StatusText(no.Status)
	}
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if no.RetryAfter = time.Duration(seconds) * time.Second; err != nil {
		no.RetryAfter = time.Duration(no.Millis) * time.Millisecond
	}

	return no
}

// judge says what the engine is to do about an error.
func judge(err error) error {
	var no *apiError
	if !errors.As(err, &no) {
		return err
	}
	switch no.Status {
	case http.StatusTooManyRequests:
		return &message.NotSent{After: no.RetryAfter, Err: err}
	case http.StatusForbidden, http.StatusNotFound, http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return &message.NotSent{Final: true, Err: err}
	}

	return err // 401: the token may be mended within the day; 5xx: later
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
