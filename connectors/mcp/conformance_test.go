//lint:file-ignore SA1019 the suite asks for what newer versions of the protocol leave out

package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"daycare/engine/control"
)

// TestConformance runs the official suite against a server with the suite's fixtures behind the
// same HTTP handler as /mcp. The folder node_modules with the suite, and with a Node.js of version
// 22 as the package node, is in DAYCARE_MCP_CONFORMANCE.
func TestConformance(t *testing.T) {
	modules := os.Getenv("DAYCARE_MCP_CONFORMANCE")
	if modules == "" {
		t.Skip("NOT TESTED with the conformance suite of MCP: it needs npm\n" +
			"  npm install --prefix /tmp/conformance @modelcontextprotocol/conformance@0.1.16 node@22\n" +
			"  DAYCARE_MCP_CONFORMANCE=/tmp/conformance/node_modules go test ./connectors/mcp -run TestConformance")
	}
	peer := Peer{Name: "suite", API: control.NewClient(http.DefaultTransport)}
	mux := http.NewServeMux()
	mux.Handle("/mcp", wire(fixtures(), slog.New(slog.DiscardHandler), func(*http.Request) Peer { return peer }))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)

	bin := filepath.Join(modules, ".bin")
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "node"), filepath.Join(bin, "conformance"), "server",
		"--url", server.URL+"/mcp")
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out[max(0, len(out)-3000):])
	total := regexp.MustCompile(`Total: (\d+) passed, (\d+) failed`).FindStringSubmatch(string(out))
	if err != nil || total == nil || total[1] != "40" || total[2] != "0" {
		t.Errorf("%v, %q: want 40 passed, 0 failed", err, total)
	}
}

func text(s string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
}

// pixel is a picture, and what stands for a sound.
var pixel = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89")

// fixtures is a server of what the suite calls, as its README says.
func fixtures() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "fixtures", Version: "1"}, &sdk.ServerOptions{
		CompletionHandler: func(context.Context, *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
			return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: []string{"paris"}, Total: 1}}, nil
		},
		SubscribeHandler:   func(context.Context, *sdk.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *sdk.UnsubscribeRequest) error { return nil },
	})
	fixtureTools(s)
	fixtureDialogs(s)
	fixtureResources(s)
	fixturePrompts(s)

	return s
}

// tool adds a tool without typed arguments.
func tool(s *sdk.Server, name string, do func(context.Context, *sdk.CallToolRequest, map[string]any) (*sdk.CallToolResult, error)) {
	sdk.AddTool(s, &sdk.Tool{Name: name, Description: "a fixture of the suite", InputSchema: map[string]any{"type": "object"}},
		func(ctx context.Context, r *sdk.CallToolRequest, in map[string]any) (*sdk.CallToolResult, any, error) {
			result, err := do(ctx, r, in)
			return result, nil, err
		})
}

func fixtureTools(s *sdk.Server) {
	fixed := func(name string, content ...sdk.Content) {
		tool(s, name, func(context.Context, *sdk.CallToolRequest, map[string]any) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: content}, nil
		})
	}
	said := &sdk.TextContent{Text: "This is a simple text response for testing."}
	picture := &sdk.ImageContent{Data: pixel, MIMEType: "image/png"}
	embedded := &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "test://embedded-resource", MIMEType: "text/plain",
		Text: "This is an embedded resource content."}}
	fixed("test_simple_text", said)
	fixed("test_image_content", picture)
	fixed("test_audio_content", &sdk.AudioContent{Data: pixel, MIMEType: "audio/wav"})
	fixed("test_embedded_resource", embedded)
	fixed("test_multiple_content_types", said, picture, embedded)

	tool(s, "test_tool_with_logging", func(ctx context.Context, r *sdk.CallToolRequest, _ map[string]any) (*sdk.CallToolResult, error) {
		for _, step := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
			_ = r.Session.Log(ctx, &sdk.LoggingMessageParams{Level: "info", Data: step})
		}
		return text("logged"), nil
	})
	tool(s, "test_tool_with_progress", func(ctx context.Context, r *sdk.CallToolRequest, _ map[string]any) (*sdk.CallToolResult, error) {
		token := r.Params.GetProgressToken()
		for _, at := range []float64{0, 50, 100} {
			_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: at, Total: 100})
		}
		return text(fmt.Sprint(token)), nil
	})
	tool(s, "test_error_handling", func(context.Context, *sdk.CallToolRequest, map[string]any) (*sdk.CallToolResult, error) {
		return nil, errors.New("this tool intentionally returns an error for testing")
	})
	tool(s, "test_reconnection", func(_ context.Context, r *sdk.CallToolRequest, _ map[string]any) (*sdk.CallToolResult, error) {
		if r.Extra != nil && r.Extra.CloseSSEStream != nil {
			r.Extra.CloseSSEStream(sdk.CloseSSEStreamArgs{RetryAfter: 10 * time.Millisecond})
		}
		time.Sleep(100 * time.Millisecond) // the suite reconnects meanwhile
		return text("reconnected"), nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "json_schema_2020_12_tool", Description: "a fixture of the suite", InputSchema: map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
		"$defs": map[string]any{"address": map[string]any{"type": "object",
			"properties": map[string]any{"street": map[string]any{"type": "string"}, "city": map[string]any{"type": "string"}}}},
		"properties": map[string]any{"name": map[string]any{"type": "string"},
			"address": map[string]any{"$ref": "#/$defs/address"}},
		"additionalProperties": false,
	}}, func(context.Context, *sdk.CallToolRequest, map[string]any) (*sdk.CallToolResult, any, error) {
		return text("called"), nil, nil
	})
}

// fixtureDialogs ask the client something.
func fixtureDialogs(s *sdk.Server) {
	tool(s, "test_sampling", func(ctx context.Context, r *sdk.CallToolRequest, in map[string]any) (*sdk.CallToolResult, error) {
		answer, err := r.Session.CreateMessage(ctx, &sdk.CreateMessageParams{MaxTokens: 100,
			Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: fmt.Sprint(in["prompt"])}}}})
		if err != nil {
			return nil, err
		}
		words, _ := answer.Content.(*sdk.TextContent)
		return text(fmt.Sprintf("LLM response: %v", words)), nil
	})

	field := func(kind string, more ...any) map[string]any {
		m := map[string]any{"type": kind}
		for i := 0; i < len(more); i += 2 {
			m[more[i].(string)] = more[i+1]
		}
		return m
	}
	titled := func(names ...string) (list []map[string]any) {
		for _, n := range names {
			list = append(list, map[string]any{"const": n, "title": strings.ToUpper(n)})
		}
		return list
	}
	options := []string{"option1", "option2", "option3"}
	for name, properties := range map[string]map[string]any{
		"test_elicitation": {"username": field("string", "description", "name"), "email": field("string", "description", "mail")},
		"test_elicitation_sep1034_defaults": {
			"name": field("string", "default", "John Doe"), "age": field("integer", "default", 30),
			"score": field("number", "default", 95.5), "verified": field("boolean", "default", true),
			"status": field("string", "default", "active", "enum", []string{"active", "inactive", "pending"}),
		},
		"test_elicitation_sep1330_enums": {
			"untitledSingle": field("string", "enum", options),
			"titledSingle":   field("string", "oneOf", titled("value1", "value2", "value3")),
			"legacyEnum":     field("string", "enum", []string{"opt1", "opt2", "opt3"}, "enumNames", []string{"One", "Two", "Three"}),
			"untitledMulti":  field("array", "items", field("string", "enum", options)),
			"titledMulti":    field("array", "items", map[string]any{"anyOf": titled("value1", "value2", "value3")}),
		},
	} {
		tool(s, name, func(ctx context.Context, r *sdk.CallToolRequest, in map[string]any) (*sdk.CallToolResult, error) {
			answer, err := r.Session.Elicit(ctx, &sdk.ElicitParams{Message: fmt.Sprint("please fill in ", in["message"]),
				RequestedSchema: map[string]any{"type": "object", "properties": properties}})
			if err != nil {
				return nil, err
			}
			return text(fmt.Sprintf("Elicitation completed: action=%s, content=%v", answer.Action, answer.Content)), nil
		})
	}
}

func fixtureResources(s *sdk.Server) {
	give := func(mime, text string, blob []byte) sdk.ResourceHandler {
		return func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			text := strings.ReplaceAll(text, "ID", strings.TrimSuffix(strings.TrimPrefix(r.Params.URI, "test://template/"), "/data"))
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, MIMEType: mime, Text: text,
				Blob: blob}}}, nil
		}
	}
	for name, handler := range map[string]sdk.ResourceHandler{
		"static-text": give("text/plain", "the static text", nil), "static-binary": give("image/png", "", pixel),
		"watched-resource": give("text/plain", "the watched text", nil),
	} {
		s.AddResource(&sdk.Resource{Name: name, Description: "a fixture", URI: "test://" + name, MIMEType: "text/plain"}, handler)
	}
	s.AddResourceTemplate(&sdk.ResourceTemplate{Name: "template", Description: "a fixture", MIMEType: "application/json",
		URITemplate: "test://template/{id}/data"}, give("application/json", `{"id":"ID","data":"Data for ID"}`, nil))
}

func fixturePrompts(s *sdk.Server) {
	prompt := func(name string, args []string, make func(map[string]string) []sdk.Content) {
		p := &sdk.Prompt{Name: name, Description: "a fixture"}
		for _, a := range args {
			p.Arguments = append(p.Arguments, &sdk.PromptArgument{Name: a, Description: "a fixture", Required: true})
		}
		s.AddPrompt(p, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			result := &sdk.GetPromptResult{}
			for _, c := range make(r.Params.Arguments) {
				result.Messages = append(result.Messages, &sdk.PromptMessage{Role: "user", Content: c})
			}
			return result, nil
		})
	}
	words := func(s string) sdk.Content { return &sdk.TextContent{Text: s} }
	prompt("test_simple_prompt", nil, func(map[string]string) []sdk.Content { return []sdk.Content{words("simple")} })
	prompt("test_prompt_with_arguments", []string{"arg1", "arg2"}, func(in map[string]string) []sdk.Content {
		return []sdk.Content{words(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", in["arg1"], in["arg2"]))}
	})
	prompt("test_prompt_with_embedded_resource", []string{"resourceUri"}, func(in map[string]string) []sdk.Content {
		return []sdk.Content{&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: in["resourceUri"], MIMEType: "text/plain",
			Text: "embedded"}}, words("please process it")}
	})
	prompt("test_prompt_with_image", nil, func(map[string]string) []sdk.Content {
		return []sdk.Content{&sdk.ImageContent{Data: pixel, MIMEType: "image/png"}, words("what is this?")}
	})
}
