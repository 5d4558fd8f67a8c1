package main

import (
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	made, err := read(strings.NewReader(`go: downloading x
{"Action":"run","Package":"daycare/connectors/irc","Test":"TestConnector/in_order"}
{"Action":"pass","Package":"daycare/connectors/irc","Test":"TestConnector/in_order"}
{"Action":"fail","Package":"daycare/connectors/email","Test":"TestConnector/in_order"}
{"Action":"skip","Package":"daycare/connectors/irc","Test":"TestConnector/says_whether/busy"}
{"Action":"skip","Package":"x/web","Test":"TestConnector/says_whether"}
{"Action":"pass","Package":"daycare/connectors/irc","Test":"TestOther/in_order"}
{"Action":"output","Package":"daycare/cmd/daycare","Test":"TestIRCServer","Output":"    irc_test.go:63: 9 messages over ngircd\n"}
{"Action":"pass","Package":"daycare/cmd/daycare","Test":"TestIRCServer"}
{"Action":"output","Package":"x/irc","Test":"TestConnector/a_night_offline","Output":"night.go:7: 200 in order, 1.2 MiB, 0.3 s\n"}
{"Action":"pass","Package":"daycare/connectors/irc","Test":"TestConnector/a_night_offline"}
`))
	if err != nil {
		t.Fatal(err)
	}

	var b strings.Builder
	made.print(&b)
	want := `| check | email | irc | web |
|---|---|---|---|
| in order | NO | yes | not run |
| says whether: busy | not run | – | – |
| says whether | not run | not run | – |
| a night offline | not run | yes | not run |

– : this platform cannot misbehave like that, or does not tell.

| a night offline | messages, memory, time |
|---|---|
| irc | 200 in order, 1.2 MiB, 0.3 s |

irc over a real IRC server: pass: 9 messages over ngircd
`
	if b.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", b.String(), want)
	}
	if len(made.failed) != 1 {
		t.Errorf("failed %q, want one", made.failed)
	}
}
