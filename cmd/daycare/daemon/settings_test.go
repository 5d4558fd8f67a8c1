package daemon

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Many programs empty or remove a file before they write it: the settings stay as they were until they are done.
func TestSettingsThatAreSavedInPieces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, ".daycare", "settings.yaml")
	write(t, path, "budget: {perDay: {usd: 5}}\n")
	r := started(t, dir)
	daily := func() float64 { return r.settings.Current().Budget.PerDay.USD }

	for name, begin := range map[string]func() error{
		"emptied": func() error { return os.Truncate(path, 0) },
		"removed": func() error { return os.Remove(path) },
	} {
		t.Run(name, func(t *testing.T) {
			before := daily()
			began := time.Now()
			if err := begin(); err != nil {
				t.Fatal(err)
			}
			for time.Since(began) < 700*time.Millisecond {
				if daily() != before && time.Since(began) < time.Second { // not where this test itself was late
					t.Fatalf("the budget became %g after %s, while the settings were being saved", daily(), time.Since(began))
				}
				time.Sleep(10 * time.Millisecond)
			}
			write(t, path, "budget: {perDay: {usd: 6}}\n")
			waitFor(t, "what was saved", func() bool { return daily() == 6 })
			write(t, path, "budget: {perDay: {usd: 5}}\n")
			waitFor(t, "the first budget", func() bool { return daily() == 5 })
		})
	}

	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "settings that stay empty", func() bool { return daily() == 0 })
}
