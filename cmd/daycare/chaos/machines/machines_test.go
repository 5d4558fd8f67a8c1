package machines

import (
	"bytes"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// What is wrong with a conversation is counted by its kind.
func TestCompare(t *testing.T) {
	want := []string{"a", "b", "c", "d"}
	for _, test := range []struct {
		got     string
		broken  Broken
		strange bool
	}{
		{"a b c d", Broken{}, false},
		{"a c d", Broken{Lost: 1}, false},
		{"a b b c d", Broken{Doubled: 1}, false},
		{"a c b d", Broken{Disordered: 1}, false},
		{"d a a c", Broken{Lost: 1, Doubled: 1, Disordered: 1}, false},
		{"a b x c d", Broken{}, true},
	} {
		r := Row{}
		r.compare("chat", want, strings.Fields(test.got))
		strange := slices.ContainsFunc(r.Violations, func(v string) bool { return strings.HasPrefix(v, "strange") })
		if r.Broken != test.broken || strange != test.strange || r.Messages != 4 {
			t.Errorf("%s: %+v, %q", test.got, r.Broken, r.Violations)
		}
	}
}

// A violation, and a bug that was not caught, fail a run; both are in its table.
func TestReport(t *testing.T) {
	r := &Report{Rows: []Row{{Way: "kill -9 of machines", Servers: 1, Messages: 7}}}
	if !r.OK() {
		t.Error("a run without violations is not OK")
	}
	r.Rows[0].violate("lost: %q", "x")
	var out bytes.Buffer
	if err := r.Print(&out); err != nil || r.OK() || !strings.Contains(out.String(), `FAILED kill -9 of machines: lost: "x"`) {
		t.Errorf("OK %v, %v:\n%s", r.OK(), err, out.String())
	}
	out.Reset()
	bugs := &Report{Bugs: []Caught{{Bug: "nocas", By: "standing still"}, {Bug: "deaf"}}}
	if err := bugs.Print(&out); err != nil || bugs.OK() || !strings.Contains(out.String(), "1 of 2 caught") {
		t.Errorf("OK %v, %v:\n%s", bugs.OK(), err, out.String())
	}

	caught := Caught{}
	caught.sees(Bug{shows: "lost: ", by: "a way"}, []string{"doubled: x"})
	if caught.By != "" || caught.Saw != "doubled: x" {
		t.Errorf("another violation shows it: %+v", caught)
	}
	caught.sees(Bug{shows: "lost: ", by: "a way"}, []string{"doubled: x", "lost: y"})
	if caught.By != "a way" || caught.Saw != "lost: y" {
		t.Errorf("its violation does not show it: %+v", caught)
	}
}

// What is sent over a wire that is held comes when it is let go, and never when it is dropped.
func TestWire(t *testing.T) {
	far, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	w, err := newWire(far.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	dial := func() (near, there net.Conn) {
		t.Helper()
		near, err := net.Dial("tcp", w.address())
		if err == nil {
			there, err = far.Accept()
		}
		if err != nil {
			t.Fatal(err)
		}
		return near, there
	}
	near, there := dial()
	w.hold(true)
	if _, err := near.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	one := make([]byte, 1)
	_ = there.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, _ := there.Read(one); n > 0 {
		t.Error("it comes through a wire that is held")
	}
	w.hold(false)
	_ = there.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := there.Read(one); err != nil {
		t.Errorf("it does not come: %v", err)
	}

	w.hold(true)
	if _, err := near.Write([]byte("y")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	w.drop()
	if rest, _ := io.ReadAll(there); len(rest) > 0 {
		t.Errorf("%q came through a wire that was dropped", rest)
	}
}
