package mcp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"daycare/cmd/daycare/commandtest"
)

// A line that is not a message is answered with an error, and the next one is read.
func TestLinesThatAreNoMessages(t *testing.T) {
	theirs, words := io.Pipe()
	answers, ours := io.Pipe()
	d := New(Options{Offer: func() Offer { return Offer{} }})
	done := make(chan error, 1)
	go func() {
		done <- d.Serve(t.Context(), theirs, ours, Peer{Name: "stdio", API: commandtest.NewHouse(t, nil).Client()})
		ours.Close()
	}()
	lines := bufio.NewScanner(answers)
	for line, want := range map[string]string{
		"hello":            `null -32700 the line is not JSON`,
		`{"jsonrpc":"2.0"`: `null -32700 the line is not JSON`,
		`{"id":7}`:         `7 -32600 this is not a JSON-RPC 2.0 message`,
		`{"jsonrpc":"1.0","id":"a","method":"ping"}`: `"a" -32600 this is not a JSON-RPC 2.0 message`,
		`"text"`:       `null -32600 this is not a JSON-RPC 2.0 message`,
		`[]`:           `null -32600 a batch needs messages`,
		`[{"id":[8]}]`: `null -32600 this is not a JSON-RPC 2.0 message`,
	} {
		if _, err := fmt.Fprintf(words, "\r\n%s\n", line); err != nil {
			t.Fatal(err)
		}
		var a struct {
			JSONRPC string
			ID      json.RawMessage
			Error   struct {
				Code    int
				Message string
			}
		}
		if !lines.Scan() || json.Unmarshal(lines.Bytes(), &a) != nil || a.JSONRPC != "2.0" {
			t.Fatalf("%.40s: answered with %q, %v", line, lines.Text(), lines.Err())
		}
		if got := fmt.Sprintf("%s %d %s", a.ID, a.Error.Code, a.Error.Message); !strings.HasPrefix(got, want) {
			t.Errorf("%.40s: answered with %q, want %q", line, got, want)
		}
	}

	// The last line needs no end.
	const last = `{"jsonrpc":"2.0","id":9,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
		`"clientInfo":{"name":"t","version":"1"}}}`
	if _, err := io.WriteString(words, last); err != nil {
		t.Fatal(err)
	}
	words.Close()
	if !lines.Scan() || !strings.Contains(lines.Text(), `"id":9,"result"`) {
		t.Errorf("a message behind them is answered with %q", lines.Text())
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
