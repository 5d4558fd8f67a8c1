package terminal

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"daycare/engine/control"
)

var update = flag.Bool("update", false, "write the golden frames anew")

// A driver is the UI without a terminal: keys in, frames out. It runs in a bubble of
// testing/synctest, where time passes only when the test waits, so that frames are
// the same each time.
type driver struct {
	t      *testing.T
	m      *Model
	daemon *daemon
	msgs   chan tea.Msg
}

// drive runs f with a UI of the given size in front of a daemon.
func drive(t *testing.T, d *daemon, width, height int, f func(*driver)) {
	t.Helper()
	drives(t, d, "", width, height, f)
}

// drives is drive with a folder of hints, for what must survive leaving.
func drives(t *testing.T, d *daemon, hints string, width, height int, f func(*driver)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l := newLink(d.dial)
	m := newModel(Options{Dial: d.dial, Own: own, Hints: hints, Setup: d.setup, Workspace: "/home/ada/project"}, l, callOver(ctx, l),
		func(f func(context.Context) tea.Msg) tea.Cmd { return func() tea.Msg { return f(ctx) } })
	dr := &driver{t: t, m: m, daemon: d, msgs: make(chan tea.Msg, 1<<16)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.run(ctx, func(msg tea.Msg) { dr.msgs <- msg })
	}()
	dr.run(m.Init())
	dr.send(tea.WindowSizeMsg{Width: width, Height: height})
	dr.wait(100 * time.Millisecond)
	defer func() {
		m.memory.save(hintsOf(m))
		cancel()
		<-done
		time.Sleep(time.Minute) // commands that wait, like the clock, end by themselves
	}()
	f(dr)
}

func own(m control.Message) control.Message {
	m.Connector, m.UserID, m.ChannelID = "terminal", "ada", "default"
	return m
}

// run runs a command as Bubble Tea would, beside everything else.
func (d *driver) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	go func() { d.msgs <- cmd() }()
}

// handle gives a message to the model; lists of commands are taken apart.
func (d *driver) handle(msg tea.Msg) {
	if v := reflect.ValueOf(msg); v.IsValid() && v.Kind() == reflect.Slice && v.Type().Elem() == reflect.TypeFor[tea.Cmd]() {
		cmds := v.Convert(reflect.TypeFor[[]tea.Cmd]()).Interface().([]tea.Cmd)
		if _, beside := msg.(tea.BatchMsg); beside {
			for _, c := range cmds {
				d.run(c)
			}
			return
		}
		go func() { // a sequence
			for _, c := range cmds {
				if c != nil {
					d.msgs <- c()
				}
			}
		}()
		return
	}
	_, cmd := d.m.Update(msg)
	d.run(cmd)
}

// settle handles messages until nobody has anything to say.
func (d *driver) settle() {
	for {
		synctest.Wait()
		select {
		case msg := <-d.msgs:
			d.handle(msg)
		default:
			return
		}
	}
}

func (d *driver) send(msg tea.Msg) {
	d.handle(msg)
	d.settle()
}

// wait lets time pass.
func (d *driver) wait(for_ time.Duration) {
	d.settle()
	for end := time.Now().Add(for_); time.Now().Before(end); {
		time.Sleep(min(50*time.Millisecond, time.Until(end)))
		d.settle()
	}
}

// keys are named as Bubble Tea names them.
var keys = map[string]tea.KeyPressMsg{
	"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "tab": {Code: tea.KeyTab}, "up": {Code: tea.KeyUp},
	"down":      {Code: tea.KeyDown},
	"ctrl+left": {Code: tea.KeyLeft, Mod: tea.ModCtrl}, "ctrl+right": {Code: tea.KeyRight, Mod: tea.ModCtrl},
	"ctrl+up": {Code: tea.KeyUp, Mod: tea.ModCtrl}, "ctrl+down": {Code: tea.KeyDown, Mod: tea.ModCtrl},
	"alt+up": {Code: tea.KeyUp, Mod: tea.ModAlt}, "shift+up": {Code: tea.KeyUp, Mod: tea.ModShift},
	"ctrl+home": {Code: tea.KeyHome, Mod: tea.ModCtrl},
	"delete":    {Code: tea.KeyDelete},
	"pgup":      {Code: tea.KeyPgUp}, "pgdown": {Code: tea.KeyPgDown}, "backspace": {Code: tea.KeyBackspace},
}

// press presses keys, one after the other.
func (d *driver) press(names ...string) {
	d.t.Helper()
	for _, name := range names {
		k, ok := keys[name]
		if rest, ctrl := strings.CutPrefix(name, "ctrl+"); !ok && ctrl {
			k, ok = tea.KeyPressMsg{Code: rune(rest[0]), Mod: tea.ModCtrl}, true
		}
		if rest, alt := strings.CutPrefix(name, "alt+"); !ok && alt {
			k, ok = tea.KeyPressMsg{Code: rune(rest[0]), Mod: tea.ModAlt}, true
		}
		if !ok {
			k = tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
		}
		d.send(k)
	}
	d.wait(150 * time.Millisecond)
}

// write types text.
func (d *driver) write(text string) {
	for _, r := range text {
		d.send(tea.KeyPressMsg{Code: r, Text: string(r)})
	}
}

// frame is what the screen shows, without styles.
func (d *driver) frame() string {
	lines := strings.Split(ansi.Strip(d.m.View().Content), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// shows fails unless the screen shows all of it.
func (d *driver) shows(parts ...string) {
	d.t.Helper()
	f := d.frame()
	for _, p := range parts {
		if !strings.Contains(f, p) {
			d.t.Errorf("the screen does not show %q:\n%s", p, f)
		}
	}
}

func (d *driver) hides(parts ...string) {
	d.t.Helper()
	f := d.frame()
	for _, p := range parts {
		if strings.Contains(f, p) {
			d.t.Errorf("the screen shows %q:\n%s", p, f)
		}
	}
}

// golden compares the screen with testdata/NAME.txt, and checks that it fits.
func (d *driver) golden(name string) {
	d.t.Helper()
	got := d.frame()
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	if len(lines) != d.m.screen.height {
		d.t.Errorf("%s: %d lines on a screen of %d", name, len(lines), d.m.screen.height)
	}
	for i, l := range lines {
		if w := ansi.StringWidth(l); w > d.m.screen.width {
			d.t.Errorf("%s: line %d has %d columns on a screen of %d: %q", name, i+1, w, d.m.screen.width, l)
		}
	}
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			d.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		d.t.Fatalf("%v\nrun with -update to write it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		d.t.Errorf("%s differs (-want +got); if that is meant, run with -update:\n%s", name, diff)
	}
}
