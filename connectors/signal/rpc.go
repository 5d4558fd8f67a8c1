package signal

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"daycare/connectors/chat"
)

// Codes of the daemon's errors.
const (
	userError = -1
	rateLimit = -5
	notThere  = -32601 // no such method
)

// An rpcError is the daemon's no. It comes with HTTP status 200.
type rpcError struct {
	Method  string          `json:"-"`
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

func (e *rpcError) Error() string {
	return fmt.Sprintf("signal-cli %s: %s (%d)", e.Method, e.Message, e.Code)
}

// call calls a method of the daemon, for our account.
func (c *Connector) call(ctx context.Context, method string, params map[string]any, result any) error {
	if params == nil {
		params = map[string]any{}
	} else {
		params["account"] = c.o.Account // a daemon for one account does not mind
	}

	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": "1", "method": method, "params": params})
	if err != nil {
		return fmt.Errorf("encode %s: %w", method, err)
	}

	got, err := c.client.Do(ctx, chat.Call{Name: method, Path: "/api/v1/rpc", Media: "application/json", Body: bytes.NewReader(body),
		Within: time.Minute})
	if err != nil {
		return err
	}
	if got.Status != http.StatusOK {
		return fmt.Errorf("call %s: the daemon answers %d %s", method, got.Status, http.StatusText(got.Status))
	}

	var answer struct {
		Result json.RawMessage `json:"result"`
		Error  *rpcError       `json:"error"`
	}
	if err := json.Unmarshal(got.Body, &answer); err != nil {
		return fmt.Errorf("read answer of %s: %w", method, err)
	}
	if answer.Error != nil {
		answer.Error.Method = method
		return answer.Error
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(answer.Result, result); err != nil {
		return fmt.Errorf("read result of %s: %w", method, err)
	}

	return nil
}
