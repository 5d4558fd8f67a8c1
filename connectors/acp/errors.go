package acp

import (
	"errors"
	"fmt"

	acp "github.com/coder/acp-go-sdk"

	"daycare/engine/control"
	"daycare/engine/fault"
)

// problem is an error whose text an editor shows.
func problem(code int, format string, args ...any) *acp.RequestError {
	return &acp.RequestError{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Codes of JSON-RPC and of the protocol.
const (
	codeInvalid  = -32602
	codeRefused  = -32600
	codeInternal = -32603
	codeMissing  = -32002 // resource not found
	codeNoJSON   = -32700
)

// explain makes an error of the control API one that an editor shows, with what to do.
func explain(doing string, err error) error {
	var ready *acp.RequestError
	if err == nil || errors.As(err, &ready) {
		return err
	}
	text := doing + ": " + err.Error()
	var api *control.APIError
	switch {
	case errors.As(err, &api) && api.Hint != "":
		text += "; " + api.Hint
	case errors.Is(err, control.ErrNotRunning):
		text += "; " + fault.NotRunning.Hint
	}

	return problem(codeInternal, "%s", text)
}

func errBusy() *acp.RequestError {
	return problem(codeRefused, "the session is already working on a prompt: wait until it ends, or cancel it with session/cancel")
}
