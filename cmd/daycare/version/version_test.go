package version

import (
	"testing"
)

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
