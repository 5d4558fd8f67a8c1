package connectors

import "testing"

func TestAddressesOfSettings(t *testing.T) {
	for text, want := range map[string]struct{ listens, reached bool }{
		"127.0.0.1:8787":  {true, true},
		"[::1]:8787":      {true, true},
		"localhost:65535": {true, true},
		"127.0.0.1:0":     {true, false},
		":8787":           {true, false},
		"127.0.0.1:80877": {},
		"127.0.0.1:-1":    {},
		"127.0.0.1:":      {},
		"127.0.0.1":       {},
		"http://host:80":  {},
		"":                {},
	} {
		if got := Listens(text); got != want.listens {
			t.Errorf("%q can be listened on: %v, want %v", text, got, want.listens)
		}
		if got := HostPort(text); got != want.reached {
			t.Errorf("%q is one host and its port: %v, want %v", text, got, want.reached)
		}
	}
}
