package files

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"daycare/engine/message"
	"daycare/tools"
	"daycare/tools/toolstest"
)

func TestSendFile(t *testing.T) {
	w := newWorld(t)
	var sent []string
	refused := false
	tool := NewSend(Options{Data: filepath.Join(w.ws, ".daycare"), Home: w.home,
		Keep: func(name, mime string, data []byte) (message.File, error) {
			return message.File{ID: "f1", Name: name, MimeType: mime, Size: int64(len(data)), Path: "/kept/" + string(data)}, nil
		}},
		func(_ context.Context, call tools.Call, text string, f message.File) error {
			if refused {
				return errors.New("the chat is gone")
			}
			sent = append(sent, strings.Join([]string{call.ID, text, f.Name, f.MimeType, f.Path}, "|"))
			return nil
		})
	w.tools["send_file"] = tool
	w.file("report.txt", "all is well")
	w.file(w.outside+"/secret", "secret")
	w.file(".daycare/auth.json", "key")
	w.link(w.outside+"/secret", "link")
	if err := os.Link(w.outside+"/secret", filepath.Join(w.ws, "second")); err != nil {
		t.Fatal(err)
	}

	w.want(w.call("send_file", a{"path": "report.txt", "text": "Here it is."}), tools.OK, "sent report.txt (11 B)")
	w.want(w.call("send_file", a{"path": "report.txt"}), tools.OK)
	if got := strings.Join(sent, "\n"); got != "c|Here it is.|report.txt|text/plain; charset=utf-8|/kept/all is "+
		"well\nc|report.txt|report.txt|text/plain; charset=utf-8|/kept/all is well" {
		t.Errorf("sent\n%s", got)
	}

	for path, want := range map[string]tools.Status{"link": tools.Denied, "second": tools.Denied,
		".daycare/auth.json": tools.Denied, w.outside + "/secret": tools.Denied, "none": tools.Failed, ".": tools.Failed} {
		w.want(w.call("send_file", a{"path": path}), want)
	}
	refused = true
	w.want(w.call("send_file", a{"path": "report.txt"}), tools.Failed, "the chat is gone")
	if len(sent) != 2 {
		t.Errorf("sent %v", sent)
	}

	refused = false
	toolstest.Run(t, tool, toolstest.Options{Access: w.access, Good: []string{`{"path":"report.txt"}`}, Bad: []string{`{"path":"none"}`}})
}
