//go:build !race

package browser

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/input"
)

// Files that are dragged onto the field and pictures that are pasted into it go with the message, once, and what was
// taken off again does not.
func TestDropAndPaste(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, talkScript, "")
	w.write("list.txt", "milk")
	w.write("wrong.txt", "bread")
	w.start()
	agent := w.agent("worker")
	p := w.visit()
	p.goTo("/agents/0")
	p.find("textbox", "Message to 0/ worker")

	at := eval[struct{ X, Y float64 }](p, `(() => {
		const { left, top, width, height } = document.querySelector("main .field").getBoundingClientRect();
		return { X: left + width / 2, Y: top + height / 2 };
	})()`)
	files := &input.DragData{Items: []*input.DragDataItem{}, DragOperationsMask: 1,
		Files: []string{w.path("list.txt"), w.path("wrong.txt")}}
	for _, kind := range []input.DispatchDragEventType{input.DispatchDragEventTypeDragEnter, input.DispatchDragEventTypeDragOver,
		input.DispatchDragEventTypeDrop} {
		call(p, input.DispatchDragEvent, input.DispatchDragEventParams{Type: kind, X: at.X, Y: at.Y, Data: files})
	}
	p.click("button", "Remove wrong.txt")

	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewRGBA(image.Rect(0, 0, 40, 30))); err != nil {
		t.Fatal(err)
	}
	p.focus("textbox", "Message to 0/ worker")
	const paste = `(() => {
		const data = new DataTransfer();
		data.items.add(new File([Uint8Array.fromHex("%x")], "", { type: "image/png" }));
		document.activeElement.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
		return true;
	})()`
	eval[bool](p, fmt.Sprintf(paste, picture.Bytes()))
	p.find("button", "Remove pasted.png")
	p.looks("files of a message")
	p.types("two files")
	p.press("Enter")
	p.sees("Noted.")
	p.wait("document.querySelector('main .log img')?.naturalWidth === 40", "the pasted picture is shown")
	p.find("link", "list.txt…")

	var history struct {
		Records []struct {
			Type  string
			Files []struct{ Name string }
		}
	}
	w.api("GET", "/v1/agents/"+agent+"/history", nil, &history)
	var got []string
	for _, r := range history.Records {
		for _, f := range r.Files {
			got = append(got, r.Type+" "+f.Name)
		}
	}
	if want := []string{"user_message list.txt", "user_message pasted.png"}; !slices.Equal(got, want) {
		t.Errorf("the history has the files %q, want %q", got, want)
	}
}
