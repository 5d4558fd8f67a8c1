package address

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/disk"
)

// An edit counts at once and is named; a broken one is told once, when it is looked
// at for the last time, and leaves the last good version in force.
func TestReread(t *testing.T) {
	root := t.TempDir()
	x, _, err := Load(disk.NewVolume(root), root, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	m, err := x.Create(Descriptor{Type: Permanent, Name: "Ops", SystemPrompt: "old"}, []byte("{}\n"))
	if err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(root, "agents", m.ID, "descriptor.json")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	reread := func(last bool) Change {
		t.Helper()
		c, err := x.Reread(m.ID, last)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	reread(true) // as it was made

	write(`{"type":"permanent","id":"` + m.ID + `","name":"Ops","systemPrompt":"new","description":"keeps servers"}`)
	if c := reread(false); cmp.Diff([]string{"description", "systemPrompt"}, c.Members) != "" || c.Broken {
		t.Errorf("changed: %+v", c)
	}
	if c := reread(true); c.Members != nil || c.Found != nil || c.Broken {
		t.Errorf("read again without an edit: %+v, want nothing", c)
	}

	write("{\n  \"type\": \"permanent\",\n  \"name\" 1\n}")
	if c := reread(false); !c.Broken || c.Found != nil {
		t.Errorf("broken, may be half written: %+v, want only Broken", c)
	}
	c := reread(true)
	if !c.Broken || len(c.Found) != 1 || c.Found[0].Line != 3 || c.Found[0].Column == 0 {
		t.Errorf("broken: %+v, want one finding with its place", c)
	}
	if c := reread(true); len(c.Found) != 0 {
		t.Errorf("told twice: %+v", c.Found)
	}
	if now, _ := x.Get(m.ID); now.Descriptor.SystemPrompt != "new" {
		t.Errorf("in force is %q, want the last good version", now.Descriptor.SystemPrompt)
	}
}

// A descriptor that takes the address of another agent is not active, and is told as one that is
// broken.
func TestRereadOfAnAddressThatIsTaken(t *testing.T) {
	root := t.TempDir()
	x, _ := load(t, root)
	create(t, x, chat("1"))
	m := create(t, x, chat("2"))
	put(t, root, m.ID, `{"type":"user","connector":"telegram","userId":"u","channelId":"1"}`)
	c, err := x.Reread(m.ID, true)
	if err != nil || !c.Broken || len(c.Found) != 1 || len(c.Members) != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	if now, _ := x.Get(m.ID); now.Descriptor.ChannelID != "2" {
		t.Errorf("in force is %+v", now)
	}
	if c, err := x.Reread("none", true); err != nil || c.Broken || c.Members != nil {
		t.Errorf("of nobody: %+v, %v", c, err)
	}
}
