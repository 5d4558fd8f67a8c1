//go:build !race

package browser

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"
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
	p := w.visit("/agents/0")
	p.find("textbox", "Message to 0/ worker")

	p.drops(w.path("list.txt"), w.path("wrong.txt"))
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

	if got, want := w.filesIn(agent), []string{"user_message list.txt", "user_message pasted.png"}; !slices.Equal(got, want) {
		t.Errorf("the history has the files %q, want %q", got, want)
	}
}

// filesIn lists the files in the history of an agent, each with the type of its record.
func (w *workspace) filesIn(agent string) (list []string) {
	w.t.Helper()
	var history struct {
		Records []struct {
			Type  string
			Files []struct{ Name string }
		}
	}
	w.api("GET", "/v1/agents/"+agent+"/history", nil, &history)
	for _, r := range history.Records {
		for _, f := range r.Files {
			list = append(list, r.Type+" "+f.Name)
		}
	}
	return list
}

// drops drags files onto the field.
func (p *tab) drops(paths ...string) {
	p.t.Helper()
	at := eval[struct{ X, Y float64 }](p, `(() => {
		const { left, top, width, height } = document.querySelector("main .field").getBoundingClientRect();
		return { X: left + width / 2, Y: top + height / 2 };
	})()`)
	files := &input.DragData{Items: []*input.DragDataItem{}, DragOperationsMask: 1, Files: paths}
	for _, kind := range []input.DispatchDragEventType{input.DispatchDragEventTypeDragEnter, input.DispatchDragEventTypeDragOver,
		input.DispatchDragEventTypeDrop} {
		call(p, input.DispatchDragEvent, input.DispatchDragEventParams{Type: kind, X: at.X, Y: at.Y, Data: files})
	}
}

// Every file that is chosen, dragged or pasted is attached, or the page says which one is not: several that are chosen at
// once, those beside a folder, and one that comes while a message is on its way, which goes with the next one.
func TestEveryFileIsAttached(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, talkScript, "")
	for _, name := range []string{"one.txt", "two.txt", "three.txt", "four.txt", "late.txt", "folder/inside.txt"} {
		w.write(name, "text of "+name)
	}
	w.write("empty.txt", "")
	w.start()
	agent := w.agent("worker")
	p := w.visit("/agents/0")
	p.find("textbox", "Message to 0/ worker")
	picker := eval[*runtime.RemoteObject](p, "document.querySelector('main input[type=file]')")
	chosen := dom.SetFileInputFilesParams{Files: []string{w.path("one.txt"), w.path("two.txt")}, ObjectID: picker.ObjectID}
	call(p, dom.SetFileInputFiles, chosen)
	p.find("button", "Remove one.txt")
	p.find("button", "Remove two.txt")
	p.drops(w.path("three.txt"), w.path("folder"), w.path("four.txt"), w.path("empty.txt"))
	p.sees("folder is not attached")
	p.find("button", "Remove three.txt")
	p.find("button", "Remove four.txt")
	p.find("button", "Remove empty.txt")

	eval[bool](p, `(() => {
		const send = fetch;
		window.fetch = async (path, options) => {
			if (options.method === "POST" && String(path).endsWith("/messages")) {
				await new Promise(go => { window.release = go; });
				window.release = null; // not by another request, which comes while this one is held
			}
			return send(path, options);
		};
		return true;
	})()`)
	p.focus("textbox", "Message to 0/ worker")
	p.types("four files")
	p.press("Enter")
	p.wait("window.release", "the message is on its way")
	p.drops(w.path("late.txt"))
	p.find("button", "Remove late.txt")
	eval[bool](p, "release() ?? true")
	p.sees("Noted.")
	p.find("button", "Remove late.txt")
	p.focus("textbox", "Message to 0/ worker")
	p.types("one more")
	p.press("Enter")
	p.wait("window.release", "the next message is on its way")
	eval[bool](p, "release() ?? true")
	w.until("both are answered", func() bool { return strings.Count(w.history(agent), "Noted.") == 2 })
	var want []string
	for _, name := range []string{"one.txt", "two.txt", "three.txt", "four.txt", "empty.txt", "late.txt"} {
		want = append(want, "user_message "+name)
	}
	if got := w.filesIn(agent); !slices.Equal(got, want) {
		t.Errorf("the history has the files %q, want %q", got, want)
	}
}
