package term

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"daycare/engine/control"
	"daycare/engine/workspace"
)

// That the daemon has another version is said once, with what to do about it.
func TestAnotherVersionIsSaidOnce(t *testing.T) {
	for theirs, want := range map[string]string{"0.0.1": "restart it with: daycare restart", "99.0.0": "daycare update"} {
		var out strings.Builder
		c := &App{Streams: Streams{Err: &out}}
		c.otherVersion(theirs)
		c.otherVersion(theirs)
		if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, theirs) || !strings.Contains(got, want) {
			t.Errorf("of %s: %q", theirs, got)
		}
	}
}

// A full-screen UI learns of another version without a line on its screen.
func TestAnotherVersionIsSaidToTheUI(t *testing.T) {
	root := t.TempDir()
	home := filepath.Join(root, workspace.Home)
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(home, control.SocketName))
	if err != nil {
		t.Fatal(err)
	}

	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Daycare-Version", "99.0.0")
		_, _ = w.Write([]byte("{}"))
	})}
	go func() { _ = server.Serve(l) }()
	defer server.Close()

	var theirs string
	client, err := DialQuietly(workspace.At(root), func(v string) { theirs = v })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Status(t.Context()); err != nil {
		t.Fatal(err)
	}
	if what, do := OtherVersion(theirs); !strings.Contains(what, "99.0.0, newer") || !strings.Contains(do, "daycare update") {
		t.Errorf("of %q: %q, %q", theirs, what, do)
	}
}
