package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"daycare/engine/crash"
	"daycare/engine/disk"
)

// One number is replaced, and nothing else of what a user wrote.
func TestOneValueIsReplacedAndNothingElse(t *testing.T) {
	for name, text := range map[string]string{
		"in a line":  "# Grüße\nbudget: { perDay: { usd: 5, tokens: 5 }, total: { usd: 5 } } # five\n",
		"in a block": "log: { level: info }\nbudget:\n  # mine\n  perDay:\n    tokens: 5\n    usd: 5 # a day\n  total: { usd: 5 }\n",
		"in flow":    "budget: {\"perDay\": {\"usd\": 5}}\n",
		"umlauts":    "models: [{ id: 'ää' }]\nbudget: { perAgent: { usd: 5 }, perDay: { usd: 5 } } # ü\n",
	} {
		root := t.TempDir()
		path := filepath.Join(root, Name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := SetPlain(disk.NewVolume(root), root, "12.5", "budget", "perDay", "usd"); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}

		now, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(now) != len(text)+3 || strings.Count(string(now), "12.5") != 1 {
			t.Errorf("%s: the file is now\n%s", name, now)
		}

		c, _, err := Load(root, nil)
		if err != nil || c.Budget.PerDay.USD != 12.5 {
			t.Errorf("%s: %v, budget %+v", name, err, c)
		}
	}
}

// What is not there as a number of its own is left to the user.
func TestWhatIsNotPlainIsNotReplaced(t *testing.T) {
	for name, text := range map[string]string{
		"missing": "budget: { total: { usd: 5 } }\n", "no settings": "", "an alias": "budget: { total: &t { usd: 5 }, perDay: *t }\n",
		"a merge":           "budget: { total: &t { usd: 5 }, perDay: { <<: *t } }\n",
		"an aliased number": "budget: { total: { usd: &n 5 }, perDay: { usd: *n } }\n",
		"several keys":      "budget:\n  perDay:\n    usd:\n      a: 1\n",
		"braces":            "budget: { perDay: { usd: {} } }\n",
		"an anchor":         "budget: { perDay: { usd: &n 5 } }\n", "quoted": "budget: { perDay: { usd: \"5\" } }\n",
	} {
		root := t.TempDir()
		path := filepath.Join(root, Name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := SetPlain(disk.NewVolume(root), root, "12.5", "budget", "perDay", "usd"); !errors.Is(err, ErrNotPlain) {
			t.Errorf("%s: %v, want ErrNotPlain", name, err)
		}
		if now, err := os.ReadFile(path); err != nil || string(now) != text {
			t.Errorf("%s: %v, the file is now\n%s", name, err, now)
		}
	}
}

// The settings are replaced if they are as they were read, and else stay.
func TestTheSettingsAreReplacedAsTheyWereRead(t *testing.T) {
	root := t.TempDir()
	vol := disk.NewVolume(root)
	path := filepath.Join(root, Name)
	if err := os.WriteFile(path, []byte("a: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ data, before, after string }{{"a: 2\n", "a: 1\n", "a: 2\n"}, {"a: 3\n", "a: 1\n", "a: 2\n"}} {
		err := Replace(vol, root, []byte(tt.data), []byte(tt.before))
		now, rerr := os.ReadFile(path)
		if rerr != nil || string(now) != tt.after || errors.Is(err, disk.ErrChanged) != (tt.data != tt.after) ||
			(err != nil) != (tt.data != tt.after) {
			t.Errorf("%q over %q: %v, the file has %q, %v", tt.data, tt.before, err, now, rerr)
		}
	}

	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(link, link); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(path), os.Symlink(link, path)); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{"replaced": Replace(vol, root, nil, nil), "set": SetPlain(vol, root, "1", "a")} {
		if err == nil || errors.Is(err, ErrNotPlain) || !strings.Contains(err.Error(), "set") {
			t.Errorf("%s through a link that leads nowhere: %v", what, err)
		}
	}
	if data, err := os.Readlink(path); err != nil || data != link {
		t.Errorf("the link is %q, %v", data, err)
	}
}

// A save that comes meanwhile stays, and settings that are no YAML are named as such.
func TestSettingsThatChangeWhileAValueIsReplaced(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, Name)
	save := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	save("a: 1\n")
	crash.Meanwhile(t, "settings.write", func(int) { save("a: 2\n") })
	vol := disk.NewVolume(root)
	if err := SetPlain(vol, root, "3", "a"); !errors.Is(err, disk.ErrChanged) || !strings.HasPrefix(err.Error(), "set a: ") {
		t.Errorf("with a save meanwhile: %v", err)
	}
	if now, err := os.ReadFile(path); string(now) != "a: 2\n" || err != nil {
		t.Errorf("the file has %q, %v", now, err)
	}

	save("a: [\n")
	if err := SetPlain(vol, root, "3", "a"); err == nil || errors.Is(err, ErrNotPlain) || !strings.Contains(err.Error(), "not YAML") {
		t.Errorf("of a file that is no YAML: %v", err)
	}
}

// Settings that cannot be read are not changed, and not taken for none.
func TestSettingsThatCannotBeRead(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, Name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := SetPlain(disk.NewVolume(root), root, "1", "a"); err == nil || errors.Is(err, ErrNotPlain) {
		t.Errorf("set: %v", err)
	}
	if c, _, err := Load(root, noEnv); err == nil || c != nil {
		t.Errorf("loaded: %+v, %v", c, err)
	}
}
