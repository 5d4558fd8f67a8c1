package term

import "testing"

func TestNear(t *testing.T) {
	for typed, want := range map[string]bool{
		"stat": true, "status": true, "statsu": true, "sttus": true, "statuss": true, "xtatus": true, "tsatus": true, "statu": true,
		"stop": false, "statsuu": false, "sutats": false, "xstatu": false, "chat": false,
	} {
		if near(typed, "status") != want {
			t.Errorf("%q near status: %v, want %v", typed, !want, want)
		}
	}
	if near("statusx1", "status") || !near("a", "as") || near("b", "as") {
		t.Error("one slip is enough, and not two")
	}
}
