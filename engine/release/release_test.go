package release

import (
	"slices"
	"testing"
)

func TestOrderOfVersions(t *testing.T) {
	inOrder := []string{"no version", "0.0.9", "0.1.0-dev", "0.1.0-rc.2", "0.1.0-rc.10",
		"0.1.0", "0.1.9", "0.1.10", "0.2.0", "1.0.0", "10.0.0"}
	if shuffled := slices.Clone(inOrder); true {
		slices.Reverse(shuffled)
		if slices.SortFunc(shuffled, Compare); !slices.Equal(shuffled, inOrder) {
			t.Errorf("the order is %q, want %q", shuffled, inOrder)
		}
	}
	if Compare("v1.2.3", "1.2.3") != 0 {
		t.Error("v1.2.3 is not 1.2.3")
	}

	for _, v := range []string{"", "1", "1.2", "1.2.3.4", "1.2.x", "1.-2.3", "1.2.3-"} {
		if Valid(v) {
			t.Errorf("%q passes as a version", v)
		}
	}
}
