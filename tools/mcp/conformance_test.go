package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"daycare/engine/finding"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/tools"
)

// probeEnv makes the program of these tests a client for the official conformance suite.
const probeEnv = "DAYCARE_TEST_MCP_PROBE"

var (
	// failed is a scenario with checks that failed, and not only with a warning that something was
	// late, as on a busy machine; total the end of what the suite prints.
	failed = regexp.MustCompile(`(?m)^✗ (\S+): \d+ passed, [1-9]`)
	total  = regexp.MustCompile(`Total: [1-9]\d* passed, \d+ failed`)
)

// The official conformance suite (npm @modelcontextprotocol/conformance) drives this package as a
// client. How many checks there are depends on how many requests a client makes.
func TestConformance(t *testing.T) {
	peers := os.Getenv("DAYCARE_MCP_CONFORMANCE")
	if peers == "" {
		t.Skip("NOT TESTED against the official conformance suite of MCP: it needs npm\n" +
			"  npm install --prefix /tmp/mcp @modelcontextprotocol/conformance@0.1.16 node@22\n" +
			"  DAYCARE_MCP_CONFORMANCE=/tmp/mcp/node_modules go test ./tools/mcp -run TestConformance -v")
	}
	for _, suite := range []string{"core", "auth"} {
		t.Run(suite, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), filepath.Join(peers, ".bin/node"), filepath.Join(peers, ".bin/conformance"),
				"client", "--command", os.Args[0], "--suite", suite, "--output-dir", t.TempDir())
			cmd.Env = append(os.Environ(), probeEnv+"=1")
			text, _ := cmd.CombinedOutput() // the summary says which scenarios failed
			_, summary, _ := strings.Cut(string(text), "=== SUITE SUMMARY ===")
			end := total.FindString(summary)
			if end == "" {
				t.Fatalf("no figures in:\n%s", text)
			}
			t.Logf("suite %s: %s", suite, end)
			var got []string
			for _, m := range failed.FindAllStringSubmatch(summary, -1) {
				got = append(got, m[1])
			}
			if len(got) > 0 {
				t.Errorf("suite %s: these scenarios failed: %v\n%s", suite, got, text)
			}
		})
	}
}

// probeLogins are the logins of a probe.
type probeLogins struct {
	kept
	client Client
}

func (l *probeLogins) Client(Server) (Client, error) { return l.client, nil }

// A probe is a client of one scenario.
type probe struct {
	*Pool
	ctx    context.Context
	url    string
	logins *probeLogins
	tools  map[string]*tool
}

// runProbe does what a scenario wants of a client: it logs in if it must, lists the tools and
// calls them, each as an agent would.
func runProbe(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()
	var given struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &given); err != nil {
			return fmt.Errorf("the context: %w", err)
		}
	}
	dir, err := os.MkdirTemp("", "mcp-probe")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	logins := &probeLogins{kept{by: map[string]Login{}}, Client{ID: given.ID, Secret: given.Secret}}
	if given.ID == "" {
		logins.client.ID = "https://conformance-test.local/client-metadata.json"
	}
	write := func(path string, data []byte) error { return os.WriteFile(path, data, 0o600) }
	dir = filepath.Join(dir, "mcp")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	p := &probe{ctx: ctx, url: url, logins: logins, tools: map[string]*tool{}}
	p.Pool = NewPool(ctx, Options{Dir: dir, Version: "test", WriteFile: write, WriteDraft: write, Logins: logins,
		Headers: func(Server) (http.Header, error) { return nil, nil },
		Keep: func(name, kind string, data []byte) (message.File, error) {
			return message.File{Name: name, MimeType: kind, Size: int64(len(data))}, nil
		},
		Read: func(string, []finding.Finding) {}})
	defer p.Close()
	p.configure()
	return p.run()
}

// configure has the server be started anew after a login.
func (p *probe) configure() {
	p.Configure([]Server{{ID: "a", Timeout: 20 * time.Second, URL: p.url, Stamp: fmt.Sprint(p.logins.n)}})
}

func (p *probe) run() error {
	_, done, err := p.find("a").use(p.ctx)
	if err != nil && strings.Contains(err.Error(), "daycare mcp login") {
		if err = p.login(err.Error()); err == nil {
			_, done, err = p.find("a").use(p.ctx)
		}
	}
	if err != nil {
		return err
	}
	done()
	list := p.Offered().Tools
	for _, t := range list {
		if t, ok := t.(*tool); ok {
			p.tools[t.def.Name] = t
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.tools)) {
		args := `{}`
		if name == "add_numbers" {
			args = `{"a":5,"b":3}`
		}
		if err := p.call(p.tools[name], args); err != nil {
			return err
		}
	}
	return nil
}

// call calls a tool, with a yes for what the server asks, and logs in where its result says so.
func (p *probe) call(t *tool, args string) error {
	yes := &given{fits: func(Question) bool { return true }, action: "accept", content: map[string]any{}}
	for range 3 {
		res, err := t.call(p.ctx, tools.Call{ID: "call-" + t.name, Name: t.name, Arguments: json.RawMessage(args),
			Agent: "probe", Access: permission.Default("/w"), Progress: func(string) {}}, yes)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%s(%s): %s %s\n", t.name, args, res.Status, res.Text)
		if !strings.Contains(res.Text, "daycare mcp login") {
			return nil
		}
		if err := p.login(res.Text); err != nil {
			return err
		}
	}
	return errors.New("logged in again and again")
}

// login logs in as a text says.
func (p *probe) login(text string) error {
	asker := Asker{Redirect: "http://localhost:3000/callback", Ask: browse}
	if _, scope, ok := strings.Cut(text, "--scope '"); ok {
		scope, _, _ = strings.Cut(scope, "'")
		asker.Scopes = strings.Fields(scope)
	}
	_, err := p.Login(p.ctx, "a", asker)
	p.configure()
	return err
}
