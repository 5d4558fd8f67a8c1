package version

import (
	"runtime/debug"
	"testing"
)

// TestSettings compares what is read of the build with what Go says of it.
func TestSettings(t *testing.T) {
	info, ok := debug.ReadBuildInfo()
	if !ok || len(info.Settings) < 3 {
		t.Fatalf("this test was built without settings: %+v", info)
	}
	for _, s := range info.Settings {
		if got := setting(modinfo(), s.Key); got != s.Value && got != `"`+s.Value+`"` {
			t.Errorf("%s: %q, want %q", s.Key, got, s.Value)
		}
	}
	if got := setting("\nbuild\tvcs.revision=abc", "vcs.revision"); got != "abc" {
		t.Errorf("the last line: %q", got)
	}
	if got := setting(modinfo(), "vcs.none"); got != "" {
		t.Errorf("a setting that is not there: %q", got)
	}
}

func TestVersion(t *testing.T) {
	const rev = "49a3b8348b2cdf5edbbadc49632814b166e503a5"
	for want, b := range map[string]build{
		"daycare 1.2.3 (go1.26.8, linux/amd64)":                        {},
		"daycare 1.2.3 (49a3b8348b2c, go1.26.8, linux/amd64)":          {Revision: rev},
		"daycare 1.2.3 (49a3b8348b2c modified, go1.26.8, linux/amd64)": {Revision: rev, Modified: true},
		"daycare 1.2.3 (v9, go1.26.8, linux/amd64)":                    {Revision: "v9"},
	} {
		b.Version, b.Go, b.OS, b.Arch = "1.2.3", "go1.26.8", "linux", "amd64"
		if got := b.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
