package mcptest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// form is what a server wants to know.
var form = object{"type": "object", "properties": object{"name": object{"type": "string", "minLength": 2},
	"size": object{"type": "string", "enum": []string{"small", "large"}, "default": "small"}}, "required": []string{"name"}}

// questions adds tools that ask the user something, as servers of 2026-07-28 do: they say in the
// result of a call what they want to know, and are called again with it.
func (s *server) questions() {
	s.asking("register", func() sdk.InputRequest {
		return &sdk.ElicitParams{Message: "What is\u200b your name?", RequestedSchema: form}
	})
	s.asking("confirm", func() sdk.InputRequest { return &sdk.ElicitParams{Message: "Sure?"} })
	nonce := 0
	s.asking("open", func() sdk.InputRequest {
		nonce++
		return &sdk.ElicitParams{Mode: "url", Message: "Pay there", ElicitationID: "e1",
			URL: fmt.Sprintf("https://pay.example.com/bill?nonce=%d", nonce)}
	})
	s.asking("file", func() sdk.InputRequest {
		return &sdk.ElicitParams{Mode: "url", Message: "Look", URL: "file:///etc/passwd"}
	})
	//lint:ignore SA1019 servers can still ask for samples, which are refused
	s.asking("sample", func() sdk.InputRequest { return &sdk.CreateMessageParams{MaxTokens: 10} })
	s.add("nag", "Asks again and again", nil, func(r call) (result, error) {
		return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"q": &sdk.ElicitParams{
			Message: fmt.Sprint("Really? ", len(r.Params.RequestState)), RequestedSchema: form}},
			RequestState: r.Params.RequestState + "x"}, nil
	})
}

// asking adds a tool that asks one question.
func (s *server) asking(name string, question func() sdk.InputRequest) {
	s.add(name, name, nil, func(r call) (result, error) {
		answer, ok := r.Params.InputResponses["q"].(*sdk.ElicitResult)
		if !ok {
			return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"q": question()}, RequestState: "1"}, nil
		}
		return text(fmt.Sprintf("%s %v %v", answer.Action, answer.Content["name"], answer.Content["size"]))
	})
}

var oldTools = []object{{"name": "register", "inputSchema": object{"type": "object"}},
	{"name": "nag", "inputSchema": object{"type": "object"}}, {"name": "login", "inputSchema": object{"type": "object"}}}

// oldQuestions is a server of 2025-06-18, written from the specification: it asks by requests of
// its own while a call is under way. The tool nag goes on for ever, login refuses until an address
// was opened, which 2025-11-25 has.
func oldQuestions() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	send := func(m object) {
		m["jsonrpc"] = "2.0"
		data, _ := json.Marshal(m)
		fmt.Println(string(data))
	}
	var calling json.RawMessage
	asked, logins := 0, 0
	ask := func() {
		asked++
		send(object{"id": fmt.Sprint("q", asked), "method": "elicitation/create", "params": object{
			"message": fmt.Sprint("What is your name, number ", min(asked, 2), "?"), "requestedSchema": form}})
	}
	nag := false
	for in.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name string }
			Result object
		}
		json.Unmarshal(in.Bytes(), &m)
		switch m.Method {
		case "initialize":
			send(object{"id": m.ID, "result": object{"protocolVersion": "2025-06-18", "capabilities": object{"tools": object{}},
				"serverInfo": object{"name": "old", "version": "1"}}})
		case "tools/list":
			send(object{"id": m.ID, "result": object{"tools": oldTools}})
		case "tools/call":
			if m.Params.Name == "login" {
				if logins++; logins%2 == 1 {
					page := object{"mode": "url", "message": "Log in", "elicitationId": "l", "url": "https://login.example.com/?state=1"}
					send(object{"id": m.ID, "error": object{"code": -32042, "message": "log in first",
						"data": object{"elicitations": []object{page}}}})
				} else {
					send(object{"id": m.ID, "result": object{"content": []object{{"type": "text", "text": "logged in"}}}})
				}
				continue
			}
			calling, asked, nag = m.ID, 0, m.Params.Name == "nag"
			ask()
		case "": // an answer
			if nag {
				ask()
				continue
			}
			data, _ := json.Marshal(m.Result)
			send(object{"id": calling, "result": object{"content": []object{{"type": "text", "text": string(data)}}}})
		default:
			if m.ID != nil {
				send(object{"id": m.ID, "error": object{"code": -32601, "message": "no such method"}})
			}
		}
	}
}
