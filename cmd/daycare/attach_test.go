package main

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// A picture, a PDF, a text file and an archive, sent by the command line and by a
// letter: a model that takes pictures and PDFs gets them, one that takes none is
// told, and both know the names and where the files lie.
func TestAttachments(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	bodies := map[string]gjson.Result{} // newest request of each model
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		body := gjson.ParseBytes(data)
		model := body.Get("model").String()
		if wrong := chatRules(r.Header, body); len(wrong) > 0 {
			t.Errorf("%s refuses: %v", model, wrong)
		}
		mu.Lock()
		bodies[model] = body
		mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, frames(`{"choices":[{"index":0,"delta":{"content":"seen"},"finish_reason":"stop"}]}`, "[DONE]"))
	}))
	defer service.Close()

	dir := t.TempDir()
	write := func(name string, data []byte) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var wide bytes.Buffer
	if err := png.Encode(&wide, image.NewNRGBA(image.Rect(0, 0, 3000, 30))); err != nil {
		t.Fatal(err)
	}
	write("wide.png", wide.Bytes())
	write("plan.pdf", []byte("%PDF-1.7\nnot much of one"))
	write("notes.txt", []byte("milk & bread\n"))
	write("old.zip", []byte("PK\x03\x04 binary"))
	write(".daycare/settings.yaml", []byte(`
providers:
  - {id: seeing, type: openai, baseURL: "`+service.URL+`/v1", model: seer}
  - {id: blind, type: openai, baseURL: "`+service.URL+`/v1", model: reader}
models:
  - {id: seer, images: true, documents: true}
`))
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command("daycare", args...)
		cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "GORACE=" + os.Getenv("GORACE"), "HOME=" + dir}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("daycare %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	check := func(model string, sees bool, in string) {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		var content gjson.Result // of the newest message with files
		for _, m := range bodies[model].Get("messages").Array() {
			if strings.Contains(m.Raw, "wide.png, image") {
				content = m.Get("content")
			}
		}
		text := content.String()
		kinds := map[string]int{}
		for _, part := range content.Array() {
			kinds[part.Get("type").String()]++
			if url := part.Get("image_url.url").String(); url != "" {
				_, data, _ := strings.Cut(url, ",")
				raw, err := base64.StdEncoding.DecodeString(data)
				c, _, err2 := image.DecodeConfig(bytes.NewReader(raw))
				if err != nil || err2 != nil || c.Width != 2000 {
					t.Errorf("%s: the picture is %d wide, %v, %v; want 2000", model, c.Width, err, err2)
				}
			}
		}
		if sees && (kinds["image_url"] != 1 || kinds["file"] != 1) || !sees && (kinds["image_url"] > 0 || kinds["file"] > 0) {
			t.Errorf("%s got parts %v", model, kinds)
		}
		for _, want := range []string{"wide.png, image/png", "3000x30 pixels, shown as 2000x20",
			"plan.pdf, application/pdf", "milk &amp; bread", "old.zip", in} {
			if !strings.Contains(text, want) && !strings.Contains(strings.ReplaceAll(text, `\u0026`, "&"), want) {
				t.Errorf("%s: %q is missing in %.900s", model, want, text)
			}
		}
		for _, note := range []string{"A picture is not shown: this model takes none", "A document is not shown: this model takes none"} {
			if strings.Contains(text, note) == sees {
				t.Errorf("%s: %q in its place: %v", model, note, !sees)
			}
		}
	}
	run("start", "--background")
	t.Cleanup(func() { run("stop") })
	files := []string{"--file", "wide.png", "--file", "plan.pdf", "--file", "notes.txt", "--file", "old.zip"}
	run("chat", "hello")
	run(append([]string{"send", "0/", "--wait", "what is this?"}, files...)...)
	check("seer", true, ".daycare/files/")

	// The same conversation continues with a model that takes none of it.
	run("agents", "model", "0/", "blind")
	run("send", "0/", "--wait", "and now?")
	check("reader", false, ".daycare/files/")
	run("agents", "model", "0/", "seeing")
	run("send", "0/", "--wait", "you again")
	check("seer", true, ".daycare/files/")

	// A letter that names files.
	run("agents", "reset", "0/")
	letter := `{"text": "from a script", "files": [`
	for i, name := range []string{"wide.png", "plan.pdf", "notes.txt", "old.zip"} {
		letter += strings.Repeat(", ", min(i, 1)) + strconv.Quote(filepath.Join(dir, name))
	}
	write(".daycare/drop/letter.json.new", []byte(letter+"]}"))
	clear(bodies)
	if err := os.Rename(filepath.Join(dir, ".daycare/drop/letter.json.new"), filepath.Join(dir, ".daycare/drop/letter.json")); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		mu.Lock()
		arrived := strings.Contains(bodies["seer"].Raw, "from a script")
		mu.Unlock()
		if arrived {
			break
		}
	}
	check("seer", true, ".daycare/files/")
}
