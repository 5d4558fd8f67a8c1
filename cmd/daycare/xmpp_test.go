package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"daycare/engine/freeport"
)

// prosody is a real XMPP server, with an archive, rooms, files and TLS.
type prosody struct {
	t       *testing.T
	dir     string
	address string
	cmd     *exec.Cmd
}

func newProsody(t *testing.T) *prosody {
	t.Helper()
	for _, program := range []string{"prosody", "openssl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("SKIPPED: no %s here (apt-get install prosody openssl), so no real XMPP server was spoken to", program)
		}
	}
	p := &prosody{t: t, dir: t.TempDir(), address: freeport.Take(t)}
	run(t, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
		"-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", filepath.Join(p.dir, "key.pem"), "-out", p.cert())
	for user, password := range map[string]string{"bot": "of the bot", "ada": "of ada", "eve": "of eve"} {
		write(t, filepath.Join(p.dir, "data", "localhost", "accounts", user+".dat"),
			fmt.Sprintf("return { [\"password\"] = %q; };\n", password))
	}
	_, port, _ := net.SplitHostPort(p.address)
	_, files, _ := net.SplitHostPort(freeport.Take(t))
	write(t, filepath.Join(p.dir, "prosody.cfg.lua"), fmt.Sprintf(`
run_as_root = true
daemonize = false
pidfile = %[1]q
data_path = %[2]q
log = { info = "*console" }
interfaces = { "127.0.0.1" }
c2s_ports = { %[3]s }
s2s_ports = { }
http_ports = { }
https_ports = { %[4]s }
https_interfaces = { "127.0.0.1" }
ssl = { key = %[5]q; certificate = %[6]q }
https_ssl = { key = %[5]q; certificate = %[6]q }
c2s_require_encryption = false
allow_unencrypted_plain_auth = true
authentication = "internal_plain"
storage = "internal"
archive_expires_after = "never"
limits = { }
modules_enabled = { "roster", "saslauth", "tls", "disco", "ping", "carbons", "smacks", "mam", "offline" }
modules_disabled = { "s2s" }
VirtualHost "localhost"
Component "rooms.localhost" "muc"
	modules_enabled = { "muc_mam" }
	muc_log_by_default = true
	muc_room_default_public_jids = true
	muc_room_default_persistent = true
Component "files.localhost" "http_file_share"
	http_host = "localhost"
	http_external_url = "https://localhost:%[4]s/"
`, filepath.Join(p.dir, "pid"), filepath.Join(p.dir, "data"), port, files, filepath.Join(p.dir, "key.pem"), p.cert()))
	p.start()
	t.Cleanup(p.kill)

	return p
}

func (p *prosody) cert() string { return filepath.Join(p.dir, "cert.pem") }

func (p *prosody) start() {
	p.t.Helper()
	log, err := os.OpenFile(filepath.Join(p.dir, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must(p.t, err)
	defer log.Close()
	p.cmd = exec.Command("prosody", "--config", filepath.Join(p.dir, "prosody.cfg.lua"), "-F")
	p.cmd.Stdout, p.cmd.Stderr = log, log
	must(p.t, p.cmd.Start())
	waitFor(p.t, "prosody", func() bool {
		conn, err := net.Dial("tcp", p.address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

func (p *prosody) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

func (p *prosody) settings(more string) string {
	return fmt.Sprintf(`
providers: [ { id: echo, type: scripted, options: { script: script.yaml } } ]
connectors:
  - { id: xmpp, type: xmpp, jid: bot@localhost, server: %q, secretEnv: XMPP_PASSWORD, allow: ["Ada@Localhost"], %s }
`, p.address, more)
}

// TestXMPPServer holds conversations over a real prosody while the daemon is killed again
// and again: with a single user, and in a room.
func TestXMPPServer(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]string{"chat": "", "room": "rooms: [team@rooms.localhost]"} {
		t.Run(name, func(t *testing.T) {
			p := newProsody(t)
			ada := newXMPPPerson(t, p, "ada")
			if more != "" {
				ada.send("<presence to='team@rooms.localhost/ada'><x xmlns='http://jabber.org/protocol/muc'/></presence>")
				ada.until("code='201'")
				ada.send("<iq type='set' to='team@rooms.localhost' id='open'><query xmlns='http://jabber.org/protocol/muc#owner'>" +
					"<x xmlns='jabber:x:data' type='submit'/></query></iq>")
				ada.until("id='open'")
			}
			d := &process{t: t, workspace: t.TempDir(), env: []string{"XMPP_PASSWORD=of the bot", "SSL_CERT_FILE=" + p.cert()}}
			write(t, filepath.Join(d.workspace, home, "settings.yaml"), p.settings(more))
			converse(t, d, "prosody", func(word string) {
				// As a user does the first time: wait until the other is there. Later it may be away: what
				// is said then is in the archive.
				if more == "" {
					ada.send("<presence to='bot@localhost' type='subscribe'/>")
					ada.until("from='bot@localhost/daycare'")
					ada.say("bot@localhost", "chat", word, word)
					return
				}
				ada.until("from='team@rooms.localhost/bot'")
				ada.say("team@rooms.localhost", "groupchat", word, "bot: "+word)
			}, func() string { return ada.bodies() })
		})
	}
}

// run runs a program that must succeed.
func run(t *testing.T, program string, args ...string) {
	t.Helper()
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", program, err, out)
	}
}

// xmppPerson is someone at a client.
type xmppPerson struct {
	t       *testing.T
	conn    net.Conn
	reading sync.WaitGroup
	mu      sync.Mutex
	all     string
}

func newXMPPPerson(t *testing.T, p *prosody, user string) *xmppPerson {
	t.Helper()
	conn, err := net.Dial("tcp", p.address)
	must(t, err)
	a := &xmppPerson{t: t, conn: conn}
	t.Cleanup(func() { conn.Close(); a.reading.Wait() })
	a.reading.Go(a.read)
	head := "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='localhost' version='1.0'>"
	a.send(head)
	a.until("</stream:features>")
	a.send("<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>" +
		base64.StdEncoding.EncodeToString([]byte("\x00"+user+"\x00of "+user)) + "</auth>")
	a.until("<success")
	a.send(head)
	a.until("urn:ietf:params:xml:ns:xmpp-bind")
	a.send("<iq type='set' id='bind'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq><presence/>")
	a.until("id='bind'")

	return a
}

func (a *xmppPerson) read() {
	buf := make([]byte, 1<<16)
	for {
		n, err := a.conn.Read(buf)
		a.mu.Lock()
		a.all += string(buf[:n])
		a.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (a *xmppPerson) send(text string) {
	a.t.Helper()
	_, err := io.WriteString(a.conn, text)
	must(a.t, err)
}

// say says something; what is in extra goes beside it.
func (a *xmppPerson) say(to, kind, id, text string, extra ...string) {
	a.t.Helper()
	a.send(fmt.Sprintf("<message to='%s' type='%s' id='%s'><body>%s</body>%s</message>", to, kind, id, html.EscapeString(text),
		strings.Join(extra, "")))
}

// until waits until the server has said something, in any quotes.
func (a *xmppPerson) until(said string) {
	a.t.Helper()
	waitFor(a.t, said, func() bool { return a.has(said) })
}

func (a *xmppPerson) has(said string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Contains(strings.ReplaceAll(a.all, `"`, "'"), said)
}

// bodies are what others have said to them.
func (a *xmppPerson) bodies() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var b strings.Builder
	for i, rest := range strings.Split(a.all, "<body>") {
		if text, _, ok := strings.Cut(rest, "</body>"); ok && i > 0 {
			b.WriteString(html.UnescapeString(text) + "\n")
		}
	}
	return b.String()
}

// upload puts a file on the server and returns its address.
func (a *xmppPerson) upload(p *prosody, name, media, content string) string {
	a.t.Helper()
	a.send(fmt.Sprintf("<iq type='get' to='files.localhost' id='slot-%[1]s'><request xmlns='urn:xmpp:http:upload:0' filename='%[1]s' "+
		"size='%[2]d' content-type='%[3]s'/></iq>", name, len(content), media))
	a.until("id='slot-" + name + "'")
	a.until("/" + name)
	a.mu.Lock()
	put := regexp.MustCompile(`<put url=['"]([^'"]+/` + name + `[^'"]*)['"]`).FindStringSubmatch(a.all)
	get := regexp.MustCompile(`<get url=['"]([^'"]+/` + name + `[^'"]*)['"]`).FindStringSubmatch(a.all)
	header := regexp.MustCompile(`<header name=['"]Authorization['"]>([^<]+)<`).FindAllStringSubmatch(a.all, -1)
	a.mu.Unlock()
	if put == nil || get == nil {
		a.t.Fatalf("the server gives no place for a file:\n%s", a.all)
	}
	roots := x509.NewCertPool()
	pem, err := os.ReadFile(p.cert())
	must(a.t, err)
	roots.AppendCertsFromPEM(pem)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}
	req, err := http.NewRequest(http.MethodPut, html.UnescapeString(put[1]), strings.NewReader(content))
	must(a.t, err)
	req.Header.Set("Content-Type", media)
	if len(header) > 0 {
		req.Header.Set("Authorization", header[len(header)-1][1])
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	must(a.t, err)
	resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		a.t.Fatalf("the server answers %d to a file at %s", resp.StatusCode, put[1])
	}

	return html.UnescapeString(get[1])
}
