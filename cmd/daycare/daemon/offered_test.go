package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/connectors/telegram/telegramtest"
	"daycare/engine/address"
	"daycare/engine/message"
	ws "daycare/engine/workspace"
	"daycare/tools/peers"
)

// toolTaker is a model service that remembers the tools each conversation was given, by a word
// of its last message.
type toolTaker struct {
	mu    sync.Mutex
	given map[string][]string
}

func (o *toolTaker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Tools    []struct{ Function struct{ Name string } }
		Messages []struct{ Content json.RawMessage }
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}

	var names []string
	for _, tool := range req.Tools {
		names = append(names, tool.Function.Name)
	}
	o.mu.Lock()

	for _, word := range []string{"from the terminal", "from the chat"} {
		if strings.Contains(string(req.Messages[len(req.Messages)-1].Content), word) {
			o.given[word] = names
		}
	}
	o.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	const head = `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,`
	fmt.Fprintf(w, "data: %s\"delta\":{\"content\":\"ok\"},\"finish_reason\":null}]}\n\ndata: "+
		"%s\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
		head, head)
}

func (o *toolTaker) of(word string) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.given[word]
}

// A model is given the tools that reach a chat where there is a chat to reach: an agent of
// the terminal in a workspace without one would only ever fail with them.
func TestToolsToAChatAreGivenWhereThereIsOne(t *testing.T) {
	const token = "777:token-of-tools"
	bot := telegramtest.New(token)
	t.Cleanup(bot.Close)
	t.Setenv("DAYCARE_SECRET_TELEGRAM", token)
	t.Setenv("A_KEY", "key")

	for name, tt := range map[string]struct {
		connectors string
		terminal   []string // of the tools to a chat, what an agent of the terminal has
		chat       []string
	}{
		"no connector": {},
		"a hook":       {"connectors: [ { id: hook, type: webhook } ]", nil, nil},
		"a chat as well": {fmt.Sprintf("connectors: [ { id: telegram, type: telegram, baseURL: %q, allow: ['1001'] } ]",
			bot.URL), peers.ToChat[:2], peers.ToChat},
	} {
		t.Run(name, func(t *testing.T) {
			o := &toolTaker{given: map[string][]string{}}
			server := httptest.NewServer(o)
			t.Cleanup(server.Close)
			workspace := t.TempDir()
			t.Setenv("DAYCARE_SECRET_HOOK", "a secret of the hook")
			write(t, filepath.Join(workspace, ws.Home, "settings.yaml"), fmt.Sprintf(
				"providers: [ { id: p, type: openai, model: m, baseURL: %q, apiKeyEnv: A_KEY } ]\n%s\n", server.URL, tt.connectors))
			r := started(t, workspace)
			check := func(word string, want []string) {
				t.Helper()
				waitFor(t, "a request "+word, func() bool { return o.of(word) != nil })
				got := slices.DeleteFunc(o.of(word), func(name string) bool { return !slices.Contains(peers.ToChat, name) })
				slices.Sort(got)
				if want = slices.Sorted(slices.Values(want)); !slices.Equal(got, want) {
					t.Errorf("%s the model has %q, want %q", word, got, want)
				}
			}
			a, err := r.system.Create(t.Context(), address.Descriptor{Type: address.User, Connector: "terminal", UserID: "ada"})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.system.Deliver(t.Context(),
				message.Incoming{Agent: a.ID, Kind: message.Text, Text: "from the terminal"}); err != nil {
				t.Fatal(err)
			}

			check("from the terminal", tt.terminal)
			if tt.chat != nil {
				bot.Push(telegramtest.Text(1001, "from the chat"))
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				bot.Wait(ctx, func() bool { return o.of("from the chat") != nil })
				check("from the chat", tt.chat)
			}
		})
	}
}
