//go:build !race

package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long a test waits for something that happens at once on a machine with
// nothing else to do.
const patience = 2 * time.Minute

var update = flag.Bool("update", false, "make the pictures of the docs and the golden files anew")

func TestMain(m *testing.M) {
	flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0))) // most of them wait
	flag.Parse()
	for _, name := range []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY"} {
		os.Unsetenv(name)
	}
	code := m.Run()
	chromium.close()
	if built != "" {
		os.RemoveAll(filepath.Dir(built))
	}
	os.Exit(code)
}

// built is the program that binary made.
var built string

// binary builds daycare once for all tests.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "daycare-browser")
	if err != nil {
		return "", err
	}
	built = filepath.Join(dir, "daycare")
	// What go run has linked is kept, unlike what go build has: it is linked again only after a change.
	if out, err := exec.Command("go", "run", "-exec", "cp", "..", built).CombinedOutput(); err != nil {
		return "", fmt.Errorf("go run: %w\n%s", err, out)
	}
	return built, nil
})

// A workspace is a folder with a daemon that plays a script.
type workspace struct {
	t      *testing.T
	dir    string // holds .daycare
	home   string // HOME of its programs
	daemon *exec.Cmd
	log    bytes.Buffer
}

// newWorkspace makes a workspace whose model plays script. The settings are added to those
// that every test has.
func newWorkspace(t *testing.T, script, settings string) *workspace {
	t.Helper()
	needsChromium(t)
	w := &workspace{t: t, dir: filepath.Join(t.TempDir(), "notes"), home: t.TempDir()}
	if err := os.Mkdir(w.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	w.write(".daycare/script.yaml", script)
	const model = "providers:\n  - { id: scripted, type: scripted, options: { script: .daycare/script.yaml } }\n"
	w.write(".daycare/settings.yaml", model+settings)
	t.Cleanup(w.kill)
	return w
}

// path is a file of the workspace.
func (w *workspace) path(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }

func (w *workspace) write(name, text string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(w.path(name)), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(w.path(name), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *workspace) read(name string) string {
	w.t.Helper()
	data, err := os.ReadFile(w.path(name))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

func (w *workspace) command(ctx context.Context, args ...string) *exec.Cmd {
	w.t.Helper()
	program, err := binary()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, program, append([]string{"--workspace", w.dir}, args...)...)
	cmd.Dir = w.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.home, "TZ=UTC"}
	return cmd
}

// run runs a command of daycare in the workspace and returns what it printed.
func (w *workspace) run(args ...string) string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var out, problems bytes.Buffer
	cmd := w.command(ctx, args...)
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		w.t.Fatalf("daycare %s: %v\n%s%s", strings.Join(args, " "), err, out.String(), problems.String())
	}
	return out.String()
}

// start starts the daemon and waits until it answers.
func (w *workspace) start() {
	w.t.Helper()
	w.log.Reset()
	w.daemon = w.command(context.Background(), "start")
	w.daemon.Stdout, w.daemon.Stderr = &w.log, &w.log
	if err := w.daemon.Start(); err != nil {
		w.t.Fatal(err)
	}

	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if res, err := w.client().Get("http://daycare/healthz"); err == nil {
			res.Body.Close()
			return
		}
	}
	w.kill()
	w.t.Fatalf("the daemon does not answer:\n%s", w.log.String())
}

// kill ends the daemon as a power cut would.
func (w *workspace) kill() {
	if w.daemon == nil {
		return
	}
	w.daemon.Process.Kill()
	w.daemon.Wait()
	w.daemon = nil
}

// client speaks to the socket of the daemon, with all rights.
func (w *workspace) client() *http.Client {
	socket := filepath.Join(w.dir, ".daycare", "daycare.sock")
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	return &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}
}

// api sends a request over the socket. What is not nil is sent as JSON, and the answer is
// decoded into into.
func (w *workspace) api(method, path string, body, into any) {
	w.t.Helper()
	status, answer := w.try(method, path, body)
	if status >= 300 {
		w.t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
	if into != nil {
		if err := json.Unmarshal(answer, into); err != nil {
			w.t.Fatalf("%s %s: %v\n%s", method, path, err, answer)
		}
	}
}

func (w *workspace) try(method, path string, body any) (status int, answer []byte) {
	w.t.Helper()
	var sent bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&sent).Encode(body); err != nil {
			w.t.Fatal(err)
		}
	}
	req, err := http.NewRequest(method, "http://daycare"+path, &sent)
	if err != nil {
		w.t.Fatal(err)
	}
	res, err := w.client().Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	var got bytes.Buffer
	if _, err := got.ReadFrom(res.Body); err != nil {
		w.t.Fatal(err)
	}
	return res.StatusCode, got.Bytes()
}

// agent makes an agent and returns its id.
func (w *workspace) agent(name string) string {
	w.t.Helper()
	var a struct{ ID string }
	w.api("POST", "/v1/agents", map[string]any{"type": "user", "name": name}, &a)
	return a.ID
}

// say sends a message to an agent.
func (w *workspace) say(agent, text string) {
	w.t.Helper()
	w.api("POST", "/v1/agents/"+agent+"/messages", map[string]any{"text": text}, nil)
}

// state waits until an agent has a state.
func (w *workspace) state(agent, want string) {
	w.t.Helper()
	var a struct{ State, Detail string }
	w.until(agent+" is "+want, func() bool {
		w.api("GET", "/v1/agents/"+agent, nil, &a)
		return a.State == want
	})
}

// until waits for a condition.
func (w *workspace) until(what string, holds func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("waited %v until %s", patience, what)
		}
	}
}

// history is the file history.jsonl of an agent; "" before its first turn.
func (w *workspace) history(agent string) string {
	w.t.Helper()
	data, err := os.ReadFile(w.path(".daycare/agents/" + agent + "/history.jsonl"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.t.Fatal(err)
	}
	return string(data)
}

var address = regexp.MustCompile(`https?://\S+`)

// address asks daycare web for an address with a login token of one use.
func (w *workspace) address() *url.URL {
	w.t.Helper()
	out := w.run("web", "--no-open")
	u, err := url.Parse(address.FindString(out))
	if err != nil || u.Host == "" {
		w.t.Fatal(errors.Join(err, fmt.Errorf("daycare web printed no address:\n%s", out)))
	}
	return u
}
