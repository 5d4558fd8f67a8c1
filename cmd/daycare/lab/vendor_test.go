package lab

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A laterVendor is a vendor that answers batches, in the formats of Anthropic (below /v1/messages) and OpenAI.
type laterVendor struct {
	t   *testing.T
	url string

	mu      sync.Mutex
	files   map[string][]byte
	batches []*laterBatch
	asked   map[string]int // how often each prompt was handed in

	slow   time.Duration // until the answer to a batch that was handed in leaves
	works  int           // how many looks find a batch at work
	broken map[string]string
	refuse string // why batches fail
}

type laterBatch struct {
	id, key, url string
	at           time.Time
	looks        int
	items        []laterLine
}

type laterLine struct {
	ID     string          `json:"custom_id"`
	Params json.RawMessage `json:"params,omitempty"`
	Body   json.RawMessage `json:"body,omitempty"`
	URL    string          `json:"url,omitempty"`
}

func newLaterVendor(t *testing.T) *laterVendor {
	v := &laterVendor{t: t, files: map[string][]byte{}, asked: map[string]int{}, broken: map[string]string{}}
	server := httptest.NewServer(v)
	t.Cleanup(server.Close)
	v.url = server.URL

	return v
}

// settings of a provider with batches, in a format.
func (v *laterVendor) settings(wire string) string {
	kind, base, options := "openai", v.url+"/v1", ""
	switch wire {
	case "anthropic":
		kind, base = "anthropic", v.url
	case "responses":
		options = ", options: { wire: responses }"
	}
	return fmt.Sprintf("providers: [ { id: v, type: %s, baseURL: %q, model: m1, apiKeyEnv: LAB_KEY, batch: true%s } ]\n"+
		"models: [ { id: m1, price: { input: 10, output: 100 } } ]\n", kind, base, options)
}

func (v *laterVendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	anthropic := strings.HasPrefix(r.URL.Path, "/v1/messages/batches")
	if key := r.Header.Get("X-Api-Key") + strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "); key != "k" {
		http.Error(w, `{"error":{"message":"no key"}}`, http.StatusUnauthorized)
		return
	}
	path := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/v1/messages"), "/v1")
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case parts[0] == "files" && r.Method == http.MethodPost:
		v.keep(w, r)
	case parts[0] == "files":
		w.Write(v.files[parts[1]])
	case r.Method == http.MethodPost:
		v.begin(w, r, anthropic)
	case len(parts) == 1:
		v.list(w, anthropic)
	case len(parts) == 3:
		v.results(w, v.find(parts[1]), true)
	default:
		b := v.find(parts[1])
		b.looks++
		v.say(w, b, anthropic)
	}
}

func (v *laterVendor) find(id string) *laterBatch {
	for _, b := range v.batches {
		if b.id == id {
			return b
		}
	}
	v.t.Errorf("nobody handed in %s", id)
	return &laterBatch{}
}

func (v *laterVendor) keep(w http.ResponseWriter, r *http.Request) {
	f, _, err := r.FormFile("file")
	if err != nil || r.FormValue("purpose") != "batch" {
		v.t.Errorf("purpose %q, %v", r.FormValue("purpose"), err)
		return
	}
	data, _ := io.ReadAll(f)
	id := fmt.Sprint("file-", len(v.files))
	v.files[id] = data
	fmt.Fprintf(w, `{"id":%q}`, id)
}

func (v *laterVendor) begin(w http.ResponseWriter, r *http.Request, anthropic bool) {
	var body struct {
		Requests []laterLine
		File     string `json:"input_file_id"`
		Endpoint string
		Metadata map[string]string
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		v.t.Error(err)
		return
	}
	b := &laterBatch{id: fmt.Sprint("batch-", len(v.batches)), at: time.Now(), items: body.Requests, key: body.Metadata["daycare"],
		url: body.Endpoint}
	if !anthropic {
		lines := bufio.NewScanner(bytes.NewReader(v.files[body.File]))
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var one laterLine
			if err := json.Unmarshal(lines.Bytes(), &one); err != nil || one.URL != body.Endpoint {
				v.t.Errorf("%v %q, for %q", err, lines.Text(), body.Endpoint)
			}
			b.items = append(b.items, one)
		}
	}
	for _, one := range b.items {
		if bytes.Contains(one.Body, []byte(`"stream"`)) || bytes.Contains(one.Params, []byte(`"stream"`)) {
			v.t.Errorf("a batch cannot stream: %s", one.Body)
		}
		v.asked[number.FindString(string(one.Body)+string(one.Params))]++
	}
	v.batches = append(v.batches, b)
	v.mu.Unlock()
	time.Sleep(v.slow)
	v.mu.Lock()
	v.say(w, b, anthropic)
}

func (v *laterVendor) list(w http.ResponseWriter, anthropic bool) {
	fmt.Fprint(w, `{"data":[`)
	for i := range v.batches {
		if i > 0 {
			fmt.Fprint(w, ",")
		}
		v.say(w, v.batches[len(v.batches)-1-i], anthropic)
	}
	fmt.Fprint(w, `],"has_more":false}`)
}

func (v *laterVendor) say(w http.ResponseWriter, b *laterBatch, anthropic bool) {
	ended := b.looks > v.works
	if anthropic {
		status, working, succeeded := "in_progress", len(b.items), 0
		if ended {
			status, working, succeeded = "ended", 0, len(b.items)
		}
		fmt.Fprintf(w, `{"id":%q,"type":"message_batch","processing_status":%q,"created_at":%q,"request_counts":{"processing":%d,`+
			`"succeeded":%d,"errored":0,"canceled":0,"expired":0}}`, b.id, status, b.at.UTC().Format(time.RFC3339Nano), working, succeeded)
		return
	}
	status, file := "in_progress", ""
	if ended {
		status, file = "completed", "out-"+b.id
		var out bytes.Buffer
		v.results(&out, b, false)
		v.files[file] = out.Bytes()
	}
	errs := "null"
	if v.refuse != "" {
		status, file, errs = "failed", "", fmt.Sprintf(`{"data":[{"message":%q}]}`, v.refuse)
	}
	fmt.Fprintf(w, `{"id":%q,"object":"batch","status":%q,"created_at":%d,"output_file_id":%q,"error_file_id":null,"errors":%s,`+
		`"metadata":{"daycare":%q},"request_counts":{"total":%d,"completed":%d,"failed":0}}`, b.id, status, b.at.Unix(), file, errs, b.key,
		len(b.items), len(v.files[file]))
}

// results are the answers: to "say N" it says N. broken are prompts with something else, once.
func (v *laterVendor) results(w io.Writer, b *laterBatch, anthropic bool) {
	for _, one := range b.items {
		prompt := number.FindString(string(one.Body) + string(one.Params))
		text := strings.Replace(prompt, "say", "I say", 1)
		fault := v.broken[prompt]
		switch {
		case fault == "expired" && v.asked[prompt] == 1 && anthropic:
			fmt.Fprintf(w, `{"custom_id":%q,"result":{"type":"expired"}}`+"\n", one.ID)
		case fault == "expired" && v.asked[prompt] == 1:
			fmt.Fprintf(w, `{"custom_id":%q,"response":null,"error":{"code":"batch_expired","message":"too late"}}`+"\n", one.ID)
		case fault == "invalid" && anthropic:
			fmt.Fprintf(w, `{"custom_id":%q,"result":{"type":"errored","error":{"type":"error","error":{"type":"invalid_request_error",`+
				`"message":"max_tokens"}}}}`+"\n", one.ID)
		case fault == "invalid":
			fmt.Fprintf(w, `{"custom_id":%q,"response":{"status_code":400,"body":{"error":{"message":"max_tokens"}}},`+
				`"error":null}`+"\n", one.ID)
		case anthropic:
			fmt.Fprintf(w, `{"custom_id":%q,"result":{"type":"succeeded","message":{"id":"m","type":"message","role":"assistant",`+
				`"model":"m1","content":[{"type":"text","text":%q}],"stop_reason":"end_turn",`+
				`"usage":{"input_tokens":100,"output_tokens":10}}}}`+"\n",
				one.ID, text)
		case b.url == "/v1/responses":
			fmt.Fprintf(w, `{"custom_id":%q,"response":{"status_code":200,"body":{"id":"r","object":"response","status":"completed",`+
				`"model":"m1","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":%q}]}],`+
				`"usage":{"input_tokens":100,"output_tokens":10}}},"error":null}`+"\n", one.ID, text)
		default:
			fmt.Fprintf(w, `{"custom_id":%q,"response":{"status_code":200,"body":{"id":"c","object":"chat.completion","model":"m1",`+
				`"choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,`+
				`"completion_tokens":10}}},"error":null}`+"\n", one.ID, text)
		}
	}
}

// Lines are answered through the batch API of a vendor, for half the price: what expired is handed in again, what was
// refused is a result.
func TestBatchOfAVendor(t *testing.T) {
	for _, wire := range []string{"anthropic", "openai", "responses"} {
		t.Run(wire, func(t *testing.T) {
			v := newLaterVendor(t)
			v.broken["say 2"], v.broken["say 3"] = "expired", "invalid"
			d := newDesk(t, v.settings(wire))
			t.Setenv("LAB_KEY", "k")
			d.file("q.jsonl", "{\"id\":\"a b\",\"prompt\":\"say 1\"}\n\"say 2\"\n\"say 3\"\n")
			d.batch(2, []string{"--budget", "1"}, "leave out --budget and --concurrency, or add --now")
			d.batch(1, nil, "3 lines were submitted as batch-0", "1 line was submitted as batch-1",
				"3 of 3 lines answered, 3 now, 1 failed, $0.0020")
			for _, a := range d.answers() {
				switch a.Prompt {
				case "say 3":
					if a.Reason != "error" || !strings.Contains(a.Error, "max_tokens") {
						t.Errorf("%+v", a)
					}
				default:
					if a.Answer != strings.Replace(a.Prompt, "say", "I say", 1) || a.Cost != 0.001 || a.Input != 100 || a.Reason != "done" {
						t.Errorf("%+v", a)
					}
				}
			}
			d.batch(0, nil, "3 of 3 lines answered, 0 now")
			if len(v.batches) != 2 {
				t.Errorf("%d batches were handed in", len(v.batches))
			}
		})
	}
}

// A batch that the vendor refuses answers nothing, and says why; a provider without batches is named.
func TestRefusedBatchOfAVendor(t *testing.T) {
	v := newLaterVendor(t)
	v.refuse = "The input file has too many lines."
	d := newDesk(t, v.settings("openai"))
	t.Setenv("LAB_KEY", "k")
	d.file("q.jsonl", "\"say 1\"\n")
	d.batch(1, nil, "none of its lines was answered: The input file has too many lines.")
	v.refuse = ""
	d.batch(0, nil, "1 of 1 line answered, 1 now")

	d.file("q.jsonl", "\"say 1\"\n\"say 2\"\n")
	v.works = 1 << 30
	list := filepath.Join(d.root, "q.results.handed.jsonl")
	if err := os.WriteFile(list, []byte(`{"key":"k","at":"2026-11-23T10:00:00Z","lines":["x"]}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.batch(1, []string{"--now"}, "would be paid for twice")
	if err := os.Remove(list); err != nil {
		t.Fatal(err)
	}
	d.file(".daycare/settings.yaml", "providers: [ { id: offline, type: scripted, batch: true } ]\n")
	d.batch(2, nil, "has no batch API that is known")
}

// Killed while it hands in, waits and collects, each line is handed in once, answered once, and paid for once.
func TestKilledBatchOfAVendor(t *testing.T) {
	for _, wire := range []string{"anthropic", "responses"} {
		t.Run(wire, func(t *testing.T) {
			v := newLaterVendor(t)
			v.slow, v.works = 300*time.Millisecond, 1
			d := newDesk(t, v.settings(wire))
			const lines, kills = 1000, 5
			var text strings.Builder
			for i := range lines {
				fmt.Fprintf(&text, "{\"id\":\"q%d\",\"prompt\":\"say %d\"}\n", i, i)
			}
			d.file("q.jsonl", text.String())
			start := func() (*exec.Cmd, *bytes.Buffer) {
				cmd := exec.Command(os.Args[0], "-C", d.root, "batch", filepath.Join(d.root, "q.jsonl"))
				cmd.Env = append(os.Environ(), "LAB_BATCH=1", "LAB_KEY=k")
				out := &bytes.Buffer{}
				cmd.Stdout, cmd.Stderr = out, out
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				return cmd, out
			}
			handed := func() bool {
				v.mu.Lock()
				defer v.mu.Unlock()
				return len(v.batches) > 0
			}
			results := func() int {
				data, _ := os.ReadFile(filepath.Join(d.root, "q.results.jsonl"))
				return bytes.Count(data, []byte("\n"))
			}
			for k := range kills {
				cmd, _ := start()
				switch k {
				case 0: // the vendor has it, and its answer is on the way
					until(t, handed)
				case 1: // while it waits
					time.Sleep(100 * time.Millisecond)
				default: // while it collects
					n := results()
					until(t, func() bool { return results() > n+50 || results() == lines })
				}
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				_ = cmd.Wait() // it was killed
			}
			cmd, out := start()
			if err := cmd.Wait(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			seen := map[string]int{}
			for _, a := range d.answers() {
				if seen[a.ID]++; a.Answer != strings.Replace(a.Prompt, "say", "I say", 1) {
					t.Errorf("%+v", a)
				}
			}
			for id, n := range seen {
				if n != 1 {
					t.Errorf("%s was answered %d times", id, n)
				}
			}
			for prompt, n := range v.asked {
				if n != 1 {
					t.Errorf("%q was handed in %d times", prompt, n)
				}
			}
			if len(seen) != lines || len(v.asked) != lines || !strings.Contains(out.String(), "$1.0000") {
				t.Errorf("%d of %d lines were answered, %d handed in, in %d batches: %s", len(seen), lines, len(v.asked),
					len(v.batches), out)
			}
		})
	}
}

func until(t *testing.T, met func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !met(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it takes too long")
		}
	}
}
