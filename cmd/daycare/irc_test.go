package main

import (
	"bufio"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/engine/freeport"
)

// TestIRCServer holds a conversation over a real ngircd while the daemon is killed
// again and again.
func TestIRCServer(t *testing.T) {
	t.Parallel()
	path, err := exec.LookPath("ngircd")
	if err != nil {
		t.Skip("SKIPPED: no ngircd here (apt-get install ngircd), so no real IRC server was spoken to")
	}
	address := freeport.Take(t)
	_, port, _ := strings.Cut(address, ":")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "ngircd.conf"), fmt.Sprintf(`[Global]
	Name = irc.test.example
	Info = test
	Listen = 127.0.0.1
	Ports = %s
	AdminInfo1 = test
	AdminLocation = here
	AdminEMail = admin@irc.test.example
	MotdPhrase = hello
[Limits]
	MaxConnectionsIP = 0
	MaxPenaltyTime = 0
[Options]
	DNS = no
	Ident = no
	PAM = no
`, port))
	server := exec.Command(path, "-n", "-f", filepath.Join(dir, "ngircd.conf"))
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		server.Process.Kill()
		server.Wait()
	})

	ada := &ircPerson{nick: "ada"}
	waitFor(t, "ngircd", func() bool { ada.conn, err = net.Dial("tcp", address); return err == nil })
	t.Cleanup(func() { ada.conn.Close(); ada.reading.Wait() })
	ada.reading.Go(ada.read)
	fmt.Fprintf(ada.conn, "NICK ada\r\nUSER ada 0 * ada\r\nJOIN #room\r\n")

	d := &process{t: t, workspace: t.TempDir()}
	write(t, filepath.Join(d.workspace, home, "settings.yaml"), fmt.Sprintf(`
providers: [ { id: echo, type: scripted, options: { script: %q } } ]
connectors:
  - { id: irc, type: irc, server: %q, nick: daybot, plaintext: true, allow: ["*!~ada@127.0.0.1"], channels: ["#room"] }
`, filepath.Join(d.workspace, "script.yaml"), address))
	converse(t, d, "ngircd", func(word string) {
		// As a user does: wait until the other is there.
		waitFor(t, "the bot in the channel", func() bool {
			fmt.Fprintf(ada.conn, "NAMES #room\r\n")
			time.Sleep(20 * time.Millisecond)
			return strings.Contains(ada.last(" 353 "), "daybot")
		})
		fmt.Fprintf(ada.conn, "PRIVMSG #room :daybot: %s\r\n", word)
	}, func() string { return ada.all("PRIVMSG #room") })
	d.sendsToItself("irc")
}

// ircPerson is someone at a client.
type ircPerson struct {
	nick    string
	conn    net.Conn
	reading sync.WaitGroup
	mu      sync.Mutex
	lines   []string
}

func (p *ircPerson) read() {
	for in := bufio.NewScanner(p.conn); in.Scan(); {
		if token, ok := strings.CutPrefix(in.Text(), "PING "); ok {
			fmt.Fprintf(p.conn, "PONG %s\r\n", token)
		}
		p.mu.Lock()
		p.lines = append(p.lines, in.Text())
		p.mu.Unlock()
	}
}

// last is the newest line with something in it, all are all of them.
func (p *ircPerson) last(with string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.lines) - 1; i >= 0; i-- {
		if strings.Contains(p.lines[i], with) {
			return p.lines[i]
		}
	}

	return ""
}

func (p *ircPerson) all(with string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	for _, l := range p.lines {
		if strings.Contains(l, with) {
			b.WriteString(l + "\n")
		}
	}

	return b.String()
}
