//go:build !race

package browser

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"testing"
)

// Pictures that an agent looked at or a user sent are shown; every other file can be saved, whatever it says it is.
func TestPictures(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, `
rules:
  - { contains: "look", round: 1, reply: [ { calls: [ { name: read, arguments: { path: "shot.png" } } ] } ] }
  - { tool_result: read, reply: [ { text: "A red square." } ] }
  - { reply: [ { text: "Noted." } ] }
`, "")
	square := image.NewRGBA(image.Rect(0, 0, 40, 30))
	for i := range square.Pix {
		square.Pix[i] = []uint8{200, 30, 30, 255}[i%4]
	}
	square.Set(0, 0, color.White)
	var picture bytes.Buffer
	if err := png.Encode(&picture, square); err != nil {
		t.Fatal(err)
	}
	w.write("shot.png", picture.String())
	w.start()
	agent := w.agent("worker")
	w.say(agent, "please look")
	w.state(agent, "idle")
	type file struct {
		Name string `json:"name"`
		Data []byte `json:"data"`
	}
	w.api("POST", "/v1/agents/"+agent+"/messages", map[string]any{"text": "four files", "files": []file{
		{"photo.png", picture.Bytes()}, {"notes.txt", []byte("milk")},
		{"drawing.svg", []byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`)},
		{"not.png", []byte("<html><script>alert(1)</script>")},
	}}, nil)
	w.state(agent, "idle")

	p := w.visit("/agents/0")
	p.sees("Noted.")
	p.wait("[...document.querySelectorAll('main .log img')].filter(i => i.naturalWidth === 40 && i.naturalHeight === 30).length === 2",
		"the picture of the tool and that of the message are shown")
	p.find("image", "Picture photo.png")
	p.looks("pictures")
	for _, name := range []string{"notes.txt", "drawing.svg", "not.png"} {
		p.find("link", name+"…")
	}
	type saved struct{ Kind, Way, Text string }
	got := eval[map[string]saved](p, `Promise.all([...document.querySelectorAll("main .log a[download]")].map(async a => {
		const answer = await fetch(a.href);
		const { headers } = answer;
		return [a.download, { kind: headers.get("Content-Type"), way: headers.get("Content-Disposition"), text: await answer.text() }];
	})).then(Object.fromEntries)`)
	if want := (saved{"application/octet-stream", "attachment; filename=notes.txt", "milk"}); got["notes.txt"] != want {
		t.Errorf("notes.txt is sent as %+v, want %+v", got["notes.txt"], want)
	}
	for name, s := range got {
		if s.Kind != "application/octet-stream" {
			t.Errorf("%s is sent as %s", name, s.Kind)
		}
	}
}
