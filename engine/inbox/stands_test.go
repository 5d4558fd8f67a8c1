package inbox

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// An editor that cuts the file, stands still and then writes what it has takes no message along
// that was accepted meanwhile, not even where its write lands in the tick of the clock in which
// the message was written.
func TestASaveThatStandsStillTakesNoMessageAlong(t *testing.T) {
	dir := t.TempDir()
	f := openIn(t, dir, nil)
	accepted(t, f, text("one"))
	accepted(t, f, text("two"))
	before, err := os.ReadFile(f.dir.path())
	if err != nil {
		t.Fatal(err)
	}

	editor, err := os.OpenFile(f.dir.path(), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	saved := make(chan error, 1)
	go func() {
		time.Sleep(200 * time.Millisecond)
		info, err := editor.Stat()
		_, werr := editor.WriteString(strings.Replace(string(before), "one", "one by hand", 1))
		saved <- errors.Join(err, werr, os.Chtimes(f.dir.path(), time.Time{}, info.ModTime()), editor.Close())
	}()

	accepted(t, f, text("three"))
	if err := <-saved; err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}

	var texts []string
	items, err := ReadAll(dir)
	for _, it := range items {
		texts = append(texts, it.Text)
	}
	if want := []string{"one by hand", "two", "three"}; !slices.Equal(texts, want) || err != nil {
		t.Errorf("open are %q, %v, want %q", texts, err, want)
	}
}
