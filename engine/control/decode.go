package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"daycare/engine/fault"
)

// bodyTimeout is how long a client may take to send a body.
const bodyTimeout = 60 * time.Second

// InTime calls read, which reads the body of a request to its end, and gives the client the time for a body from now on. After an
// error the limit stays: the rest of the body is still to come.
func InTime(w http.ResponseWriter, read func() error) error {
	rc := http.NewResponseController(w)
	// Only a socket has deadlines; without one there is nobody slow to guard against.
	_ = rc.SetReadDeadline(time.Now().Add(bodyTimeout))
	err := read()
	if err == nil {
		_ = rc.SetReadDeadline(time.Time{})
	}

	return err
}

// decode reads the JSON object of a request into v. A body that is absent is an
// empty object, so that POST …/stop needs none.
func decode(w http.ResponseWriter, r *http.Request, limit int64, v any) error {
	return InTime(w, func() error { return decodeBody(http.MaxBytesReader(w, r.Body, limit), v) })
}

// decodeBody is decode without HTTP around it.
func decodeBody(body io.Reader, v any) error {
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = errors.New("unexpected data after the object")
		}
	}

	return explain(err)
}

// explain words a JSON error for the author of the request.
func explain(err error) error {
	var (
		tooLarge *http.MaxBytesError
		wrong    *json.UnmarshalTypeError
		syntax   *json.SyntaxError
	)
	switch {
	case errors.As(err, &tooLarge):
		return fault.TooLarge.Says("the request is over %d bytes", tooLarge.Limit)
	case errors.As(err, &wrong):
		return &malformed{Invalid{Field: wrong.Field,
			Reason: "found a JSON " + wrong.Value + ", allowed: " + jsonName(wrong.Type.Kind())}}
	case errors.As(err, &syntax):
		return &malformed{Invalid{Reason: fmt.Sprintf("not JSON: %v at byte %d", err, syntax.Offset)}}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &malformed{Invalid{Reason: "not JSON: it ends before the object does"}}
	}

	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		name = strings.Trim(name, `"`)
		return &malformed{Invalid{Field: name, Reason: "unknown field", Hint: "remove it, or check its spelling"}}
	}

	return &malformed{Invalid{Reason: "not a request: " + err.Error()}}
}
