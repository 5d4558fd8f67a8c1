package main

import (
	"fmt"
	"net"
	"net/smtp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"daycare/engine/freeport"
)

// TestMailServers holds a conversation by mail over a real OpenSMTPD and a real
// Dovecot while the daemon is killed again and again.
func TestMailServers(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"dovecot", "smtpd"} {
		if _, err := exec.LookPath(name); err != nil || os.Getuid() != 0 {
			t.Skipf("SKIPPED: no %s here, or not root (apt-get install dovecot-imapd opensmtpd), so no real mail server was "+
				"spoken to", name)
		}
	}

	post, boxes := freeport.Take(t), freeport.Take(t)
	place, err := os.MkdirTemp("", "daycare-mail") // t.TempDir is closed to the servers' own users
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(place) })
	must(t, os.Chmod(place, 0o755))
	mails := filepath.Join(place, "mails") // a Maildir each
	for _, who := range []string{"ada", "bot"} {
		for _, sub := range []string{"new", "cur", "tmp"} {
			must(t, os.MkdirAll(filepath.Join(mails, who, sub), 0o777))
		}
	}

	must(t, exec.Command("chown", "-R", "nobody:nogroup", mails).Run())
	serveMail(t, place, mails, post, boxes)

	d := &process{t: t, workspace: t.TempDir(), env: []string{"DAYCARE_SECRET_EMAIL=sesame"}}
	write(t, filepath.Join(d.workspace, home, "settings.yaml"), fmt.Sprintf(`
providers: [ { id: echo, type: scripted, options: { script: %q } } ]
connectors:
  - { id: email, type: email, address: bot@mail.test, user: bot, imap: %q, smtp: %q, plaintext: true, trustFrom: true, allow: `+
		`[ada@mail.test] }
`, filepath.Join(d.workspace, "script.yaml"), boxes, post))
	n := 0
	converse(t, d, "opensmtpd and dovecot", func(word string) {
		n++
		mail := fmt.Sprintf("From: ada@mail.test\r\nTo: bot@mail.test\r\nSubject: Re: words\r\nMessage-ID: "+
			"<%d@mail.test>\r\nIn-Reply-To: <0@mail.test>\r\n\r\n%s\r\n", n, word)
		must(t, smtp.SendMail(post, nil, "ada@mail.test", []string{"bot@mail.test"}, []byte(mail)))
	}, func() string {
		var all strings.Builder
		paths, _ := filepath.Glob(filepath.Join(mails, "ada", "new", "*"))
		for _, path := range paths {
			data, _ := os.ReadFile(path)
			text, _, _ := strings.Cut(string(data), "text/html") // the words are in both parts
			all.WriteString(text)
		}

		return all.String()
	})
	d.sendsToItself("email")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// serveMail runs both servers until the test ends.
func serveMail(t *testing.T, dir, mails, post, boxes string) {
	t.Helper()
	_, postPort, _ := strings.Cut(post, ":")
	_, boxPort, _ := strings.Cut(boxes, ":")
	write(t, filepath.Join(dir, "smtpd.conf"), fmt.Sprintf(`
table everybody { "@" = nobody }
listen on 127.0.0.1 port %s
action "keep" maildir "%s/%%{rcpt.user}" virtual <everybody>
match from any for domain "mail.test" action "keep"
`, postPort, mails))
	write(t, filepath.Join(dir, "dovecot.conf"), fmt.Sprintf(`
base_dir = %[1]s/run
log_path = %[1]s/dovecot.log
protocols = imap
listen = 127.0.0.1
ssl = no
disable_plaintext_auth = no
mail_location = maildir:%[2]s/%%n
first_valid_uid = 1
first_valid_gid = 1
service imap-login {
  inet_listener imap { 
    port = %[3]s
  }
}
service anvil {
  chroot =
}
passdb {
  driver = static
  args = password=sesame
}
userdb {
  driver = static
  args = uid=nobody gid=nogroup home=%[2]s/%%n
}
`, dir, mails, boxPort))
	for _, args := range [][]string{
		{"smtpd", "-d", "-f", filepath.Join(dir, "smtpd.conf")},
		{"dovecot", "-F", "-c", filepath.Join(dir, "dovecot.conf")},
	} {
		var said strings.Builder
		server := exec.Command(args[0], args[1:]...)
		server.Stdout, server.Stderr = &said, &said
		must(t, server.Start())
		t.Cleanup(func() {
			server.Process.Signal(os.Interrupt)
			server.Wait()
			if t.Failed() {
				t.Logf("%s said: %s", args[0], said.String())
			}
		})
	}
	for _, address := range []string{post, boxes} {
		waitFor(t, "the mail server at "+address, func() bool {
			conn, err := net.Dial("tcp", address)
			if err == nil {
				conn.Close()
			}
			return err == nil
		})
	}
}
