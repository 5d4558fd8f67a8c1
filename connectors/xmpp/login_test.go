package xmpp

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// far is a connection to some address.
type far struct {
	net.Conn
	ip string
}

func (f far) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(f.ip), Port: 5222} }

// login logs in at a server that offers some ways; server deals with what it hears. It returns how,
// and all that the server heard.
func login(t *testing.T, ip string, offers []string, server func(heard element, say func(string)) (more bool)) (
	how, all string, err error) {
	t.Helper()
	ours, theirs := net.Pipe()
	s := &stream{conn: far{ours, ip}, in: &bounded{from: ours, left: maxStanza}}
	s.dec = xml.NewDecoder(s.in)
	features := node(nsStream, "features")
	list := node(nsSASL, "mechanisms")
	for _, name := range offers {
		list = list.with(node(nsSASL, "mechanism").saying(name))
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		defer theirs.Close()
		var text strings.Builder
		dec := xml.NewDecoder(io.TeeReader(theirs, &text))
		defer func() { all = text.String() }()
		for {
			e, err := read(dec)
			if err != nil || !server(e, func(text string) { fmt.Fprint(theirs, text) }) {
				return
			}
		}
	})
	how, err = Options{}.login(s, features.with(list), jid{"bot", "test.example", ""}, canary)
	ours.Close()
	wg.Wait()

	return how, all, err
}

// A password is said plainly only to this machine, and never where a better way is offered; without
// encryption it goes nowhere else.
func TestWhereAPasswordIsSaidPlainly(t *testing.T) {
	plain := base64.StdEncoding.EncodeToString([]byte("\x00bot\x00" + canary))
	accept := func(_ element, say func(string)) bool { say("<success xmlns='" + nsSASL + "'/>"); return false }
	for name, tt := range map[string]struct {
		ip     string
		offers []string
		said   bool
	}{
		"to this machine":     {"127.0.0.1", []string{"X-OTHER", "PLAIN"}, true},
		"elsewhere":           {"192.0.2.1", []string{"PLAIN"}, false},
		"in the same network": {"192.168.1.2", []string{"PLAIN"}, false},
		"not offered":         {"127.0.0.1", []string{"X-OTHER"}, false},
		"nothing offered":     {"127.0.0.1", nil, false},
	} {
		how, heard, err := login(t, tt.ip, tt.offers, accept)
		if strings.Contains(heard, plain) != tt.said || (err == nil) != tt.said || (how == "PLAIN") != tt.said {
			t.Errorf("%s: %q, %v, the server heard %q", name, how, err, heard)
		}
	}
	var no *refusal
	_, _, err := login(t, "127.0.0.1", []string{"PLAIN"}, func(_ element, say func(string)) bool {
		say("<failure xmlns='" + nsSASL + "'><not-authorized/><text>closed</text></failure>")
		return false
	})
	if !errors.As(err, &no) || no.Condition != "not-authorized" || no.Text != "closed" {
		t.Errorf("refused: %v", err)
	}
}

// A proof of the password is given in the best way that is offered, and a server that cannot prove
// that it knows the password, or does not speak as it must, is not believed.
func TestAPasswordIsProved(t *testing.T) {
	const salt = "W22ZaJ0SNY7soEsUEjb6gQ=="
	encoded := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	tag := func(name, text string) string {
		return "<" + name + " xmlns='" + nsSASL + "'>" + text + "</" + name + ">"
	}
	for name, tt := range map[string]struct {
		offers []string
		hash   func() hash.Hash
		knows  string // the password that the server knows
		early  bool   // its proof comes before the success
		spoils string // what of its part goes wrong
		ok     bool
	}{
		"SHA-256":                 {[]string{"PLAIN", "SCRAM-SHA-1", "SCRAM-SHA-256"}, sha256.New, canary, false, "", true},
		"SHA-1":                   {[]string{"PLAIN", "SCRAM-SHA-1"}, sha1.New, canary, false, "", true},
		"an early proof":          {[]string{"SCRAM-SHA-256"}, sha256.New, canary, true, "", true},
		"another password":        {[]string{"SCRAM-SHA-256"}, sha256.New, "other", false, "", false},
		"another, early":          {[]string{"SCRAM-SHA-256"}, sha256.New, "other", true, "", false},
		"no proof":                {[]string{"SCRAM-SHA-256"}, sha256.New, canary, false, "proof", false},
		"a refusal at once":       {[]string{"SCRAM-SHA-256"}, sha256.New, canary, false, "begin", false},
		"a refusal in the end":    {[]string{"SCRAM-SHA-256"}, sha256.New, canary, false, "end", false},
		"a refusal after a proof": {[]string{"SCRAM-SHA-256"}, sha256.New, canary, true, "end", false},
		"a challenge of no text":  {[]string{"SCRAM-SHA-256"}, sha256.New, canary, false, "text", false},
		"a challenge for others":  {[]string{"SCRAM-SHA-256"}, sha256.New, canary, false, "nonce", false},
		"an end after the begin":  {[]string{"SCRAM-SHA-256"}, sha256.New, canary, false, "gone", false},
	} {
		step, challenge := 0, ""
		shadow := &scram{hash: tt.hash, password: tt.knows}
		how, heard, err := login(t, "192.0.2.1", tt.offers, func(e element, say func(string)) bool {
			text, _ := base64.StdEncoding.DecodeString(e.Text)
			step++
			switch {
			case step == 1 && tt.spoils == "begin", step == 2 && !tt.early && tt.spoils == "end", step == 3 && tt.spoils == "end":
				say(tag("failure", "<not-authorized/>"))
				return false
			case step == 1:
				first, _ := strings.CutPrefix(string(text), header)
				_, nonce, _ := strings.Cut(first, ",r=")
				shadow.first, shadow.nonce = first, nonce
				challenge = "r=" + nonce + "more,s=" + salt + ",i=4096"
				switch tt.spoils {
				case "text":
					say(tag("challenge", "?"))
				case "nonce":
					say(tag("challenge", encoded("r=other,s="+salt+",i=4096")))
				case "gone":
					return false
				default:
					say(tag("challenge", encoded(challenge)))
				}
				return true
			case step == 2:
				want, err := shadow.answer(challenge)
				if err != nil || (string(text) == want) != (tt.knows == canary) {
					t.Errorf("%s: the answer is %q, want %q, %v", name, text, want, err)
				}
				proof := encoded(shadow.verifier)
				if tt.spoils == "proof" {
					proof = ""
				}
				if tt.early {
					say(tag("challenge", proof))
					return true
				}
				say(tag("success", proof))
				return false
			}
			say(tag("success", ""))
			return false
		})
		if (err == nil) != tt.ok || strings.Contains(heard, canary) || strings.Contains(heard, "PLAIN") {
			t.Errorf("%s: %v, the server heard %q", name, err, heard)
		}
		if want := "SCRAM-" + name; strings.HasPrefix(name, "SHA") && how != want {
			t.Errorf("%s: logged in with %q", name, how)
		}
	}
}
