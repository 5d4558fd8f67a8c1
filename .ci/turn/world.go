package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// secret signs the messages.
const secret = "turn"

// patience is how long anything may take.
const patience = time.Minute

// A world is a workspace with a webhook, whose model plays a script, and who receives the answers.
type world struct {
	binary, workspace, file string // file: what ran
	listen                  string
	answers                 *httptest.Server
	answered                chan string
	sent                    int
}

func newWorld(scratch, binary string) (*world, error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer free.Close()

	w := &world{binary: binary, workspace: filepath.Join(scratch, "workspace"), file: filepath.Join(scratch, "ran"),
		listen: free.Addr().String(), answered: make(chan string, 1)}
	w.answers = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.answered <- string(body)
	}))

	settings := fmt.Sprintf(`providers: [ { id: play, type: scripted, options: { script: %q } } ]
connectors: [ { id: hooks, type: webhook, listen: %q, hooks: [ { id: turn, secretEnv: TURN_SECRET, callback: %q } ] } ]
`, filepath.Join(w.workspace, "script.yaml"), w.listen, w.answers.URL)
	for name, text := range map[string]string{
		".daycare/settings.yaml": settings, "notes.txt": "the ferry leaves at nine\n",
		"script.yaml": `rules:
  - { tool_result: read, reply: [ { text: "it says: {{.Result}}" } ] }
  - reply: [ { calls: [ { name: read, arguments: { path: notes.txt } } ] } ]
`,
	} {
		path := filepath.Join(w.workspace, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return nil, err
		}
	}

	return w, nil
}

func (w *world) close() { w.answers.Close() }

// round starts the daemon, sends one message when nothing runs any more, and returns which
// functions ran until its answer was recorded as delivered. The first round also makes the agent,
// so it is repeated.
func (w *world) round() (ran []int, err error) {
	for {
		if ran, err = w.once(); err != nil || w.sent > 1 {
			return ran, err
		}
	}
}

func (w *world) once() (ran []int, err error) {
	var log bytes.Buffer
	daemon := exec.Command(w.binary, "--workspace", w.workspace, "start")
	daemon.Env = append(os.Environ(), "DAYCARE_TURN="+w.file, "TURN_SECRET="+secret)
	daemon.Stdout, daemon.Stderr = &log, &log
	if err := daemon.Start(); err != nil {
		return nil, err
	}
	defer func() {
		daemon.Process.Signal(syscall.SIGTERM)
		daemon.Wait()
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, log.String())
		}
	}()

	if err := until("the webhook listens", w.listens); err != nil {
		return nil, err
	}
	if err := w.quiet(daemon.Process); err != nil {
		return nil, err
	}
	delivered := w.deliveries()
	if err := w.send(); err != nil {
		return nil, err
	}

	select {
	case text := <-w.answered:
		if !strings.Contains(text, "the ferry leaves") {
			return nil, fmt.Errorf("the answer is %s", text)
		}
	case <-time.After(patience):
		return nil, errors.New("no answer")
	}
	if err := until("the delivery is recorded", func() bool { return w.deliveries() > delivered }); err != nil {
		return nil, err
	}

	return w.sample(daemon.Process)
}

// send posts the message. Each has words of its own, as no two messages are the same.
func (w *world) send() error {
	w.sent++
	body, stamp := fmt.Sprintf("look into the notes, time %d", w.sent), strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	io.WriteString(mac, stamp+"."+body)

	req, err := http.NewRequest(http.MethodPost, "http://"+w.listen+"/hooks/turn", strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "text/plain")
	req.Header.Set("X-Webhook-Timestamp", stamp)
	req.Header.Set("X-Webhook-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusAccepted {
		return fmt.Errorf("the webhook answered %s", res.Status)
	}

	return nil
}

// listens reports whether the webhook accepts connections.
func (w *world) listens() bool {
	conn, err := net.Dial("tcp", w.listen)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// deliveries counts the deliveries in the histories.
func (w *world) deliveries() (n int) {
	filepath.WalkDir(filepath.Join(w.workspace, ".daycare", "agents"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "history.jsonl" {
			text, _ := os.ReadFile(path)
			n += bytes.Count(text, []byte(`"type":"delivery"`))
		}
		return nil
	})
	return n
}

// sample returns what ran since the last sample.
func (w *world) sample(daemon *os.Process) (ran []int, err error) {
	if err := daemon.Signal(syscall.SIGUSR2); err != nil {
		return nil, err
	}
	var text []byte
	if err := until("the counters are written", func() bool {
		text, err = os.ReadFile(w.file)
		return err == nil
	}); err != nil {
		return nil, err
	}
	os.Remove(w.file)

	for line := range strings.Lines(string(text)) {
		id, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			return nil, err
		}
		ran = append(ran, id)
	}

	return ran, nil
}

// quiet waits until nothing ran for a while: what the start began is over.
func (w *world) quiet(daemon *os.Process) error {
	for still := 0; still < 4; still++ {
		time.Sleep(200 * time.Millisecond)
		ran, err := w.sample(daemon)
		if err != nil {
			return err
		}
		if len(ran) > 0 {
			still = -1
		}
	}

	return nil
}

// until waits for a condition.
func until(what string, is func() bool) error {
	for end := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			return errors.New("waited a minute until " + what)
		}
	}

	return nil
}
