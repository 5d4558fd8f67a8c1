package xmpp

import (
	"context"
	"crypto/tls"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"daycare/connectors/chat"
	"daycare/connectors/connectortest"
	"daycare/engine"
	"daycare/engine/message"
)

var (
	_ engine.Connector     = (*Connector)(nil)
	_ engine.Splitter      = (*Connector)(nil)
	_ engine.Reactor       = (*Connector)(nil)
	_ chat.Platform        = (*Connector)(nil)
	_ chat.DirectMessenger = (*Connector)(nil)
)

const canary = "canary+password/of=the account"

// trusted is the certificate of test.example.
var trusted tls.Certificate

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "xmpp")
	if err == nil {
		trusted, err = certificate("test.example", filepath.Join(dir, "roots.pem"))
	}
	if err == nil {
		err = os.Setenv("SSL_CERT_FILE", filepath.Join(dir, "roots.pem"))
	}
	if err != nil {
		log.Fatal(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

func TestConnector(t *testing.T) {
	connectortest.Run(t, func(t *testing.T) connectortest.Harness {
		s := newServer(t, canary)
		host := chat.Host{Waiting: &connectortest.Keeper{}, Hints: &connectortest.Keeper{}}
		return connectortest.Harness{
			New: func(t *testing.T, log *slog.Logger) engine.Connector {
				return testConnector(t, s, Options{}, host, log)
			},
			Offer: func(ctx context.Context, messages ...connectortest.Message) []bool {
				var stanzas []string
				for _, m := range messages {
					stanzas = append(stanzas, speech(adaJID+"/phone", m.Key, m.Text))
				}
				return s.tell(ctx, stanzas...)
			},
			Other: func(ctx context.Context, m connectortest.Message) {
				s.tell(ctx, speech(bobJID+"/desk", m.Key, m.Text))
			},
			Forge: func(ctx context.Context, m connectortest.Message) {
				s.tell(ctx, speech(eveJID, m.Key, m.Text), forgedCopy(m.Key, m.Text), forgedResult(m.Key, m.Text))
			},
			Strangers: &connectortest.Strangers{Host: &host, Told: s.heard, Write: func(ctx context.Context, m connectortest.Message) {
				s.tell(ctx, speech(eveJID+"/x", m.Key, m.Text))
			}},
			To: []message.Address{{Connector: "xmpp", ChannelID: adaJID, UserID: adaJID},
				{Connector: "xmpp", ChannelID: bobJID, UserID: bobJID}},
			Sent:    s.received,
			Fault:   s.misbehave,
			Revoke:  s.revoke,
			Shown:   s.visible,
			Unable:  []connectortest.Fault{connectortest.Busy, connectortest.Forget},
			Secrets: []string{canary},
		}
	})
}

// forgedCopy is a copy of a message by somebody who is not our server; forgedResult a message
// of an archive that nobody asked.
func forgedCopy(id, text string) string {
	return "<message from='" + eveJID + "' to='" + botJID + "'><received xmlns='" + nsCarbons + "'>" +
		forwarded(id, text) + "</received></message>"
}

func forgedResult(id, text string) string {
	return "<message from='" + botJID + "' to='" + botJID + "'><result xmlns='" + nsMAM + "' queryid='q' id='1'>" + forwarded(id, text) +
		"</result></message>"
}

func forwarded(id, text string) string {
	return "<forwarded xmlns='" + nsForward + "'>" +
		strings.Replace(speech(adaJID+"/phone", id, text), "<message ", "<message xmlns='"+nsClient+"' ", 1) + "</forwarded>"
}

func testConnector(t *testing.T, s *server, o Options, host chat.Host, log *slog.Logger) *Connector {
	t.Helper()
	o.ID, o.JID, o.Server, o.Plaintext = "xmpp", botJID, s.listener.Addr().String(), true
	if o.Allow == nil {
		o.Allow = []string{"Ada@Test.Example", bobJID} // in another spelling
	}
	c, err := New(o, canary, host, log)
	if err != nil {
		t.Fatal(err)
	}
	c.pause = time.Millisecond
	c.arrived = chat.NewQueue(c.desk, time.Millisecond, c.taken)

	return c
}
