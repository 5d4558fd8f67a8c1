package address

import "testing"

func TestChildID(t *testing.T) {
	// Descriptors on disk hold these ids: the way they are made must not change.
	for _, tt := range []struct{ parent, call, want string }{
		{"tz4a98xxat96iws9zmbrgj3a", "c1", "a3nymtebq0hwklls6ix2vpqp"},
		{"tz4a98xxat96iws9zmbrgj3a", "c2", "a4ganj6tgpuwp5advad4mxz7"},
	} {
		got := ChildID(tt.parent, tt.call)
		if got != tt.want {
			t.Errorf("ChildID(%q, %q) = %q, want %q", tt.parent, tt.call, got, tt.want)
		}
		if !ValidID(got) {
			t.Errorf("%q is no valid id of an agent", got)
		}
	}
}
