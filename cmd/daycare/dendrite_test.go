package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"daycare/engine/freeport"
)

// dendrite is a real Matrix homeserver.
type dendrite struct {
	t    *testing.T
	dir  string
	base string
	cmd  *exec.Cmd
}

func newDendrite(t *testing.T) *dendrite {
	t.Helper()
	program := os.Getenv("DAYCARE_DENDRITE")
	if program == "" {
		t.Skip("SKIPPED: DAYCARE_DENDRITE names no dendrite (CONTRIBUTING.md says how to build one), " +
			"so no real Matrix server was spoken to")
	}
	d := &dendrite{t: t, dir: t.TempDir()}
	seed := make([]byte, 32)
	_, err := rand.Read(seed)
	must(t, err)
	write(t, filepath.Join(d.dir, "key.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "MATRIX PRIVATE KEY",
		Headers: map[string]string{"Key-ID": "ed25519:test1"}, Bytes: seed})))
	conf := fmt.Sprintf("version: 2\nglobal: { server_name: localhost, private_key: %q, jetstream: { storage_path: %q },\n"+
		"  disable_federation: true }\nclient_api: { registration_disabled: false, rate_limiting: { enabled: false } }\n",
		filepath.Join(d.dir, "key.pem"), d.dir)
	for section, key := range map[string]string{"federation_api": "database", "key_server": "database", "mscs": "database",
		"room_server": "database", "sync_api": "database", "relay_api": "database", "user_api": "account_database"} {
		conf += fmt.Sprintf("%s: { %s: { connection_string: \"file:%s\" } }\n", section, key, filepath.Join(d.dir, section+".db"))
	}
	conf += fmt.Sprintf("media_api: { base_path: %q, database: { connection_string: \"file:%s\" } }\n", filepath.Join(d.dir, "media"),
		filepath.Join(d.dir, "media.db"))
	write(t, filepath.Join(d.dir, "dendrite.yaml"), conf)
	at := freeport.Take(t)
	d.base = "http://" + at
	log, err := os.Create(filepath.Join(d.dir, "log"))
	must(t, err)
	defer log.Close()
	d.cmd = exec.Command(program, "-config", filepath.Join(d.dir, "dendrite.yaml"), "-http-bind-address", at,
		"-https-bind-address", freeport.Take(t), "-really-enable-open-registration")
	d.cmd.Dir, d.cmd.Stdout, d.cmd.Stderr = d.dir, log, log
	must(t, d.cmd.Start())
	t.Cleanup(func() {
		_ = d.cmd.Process.Kill()
		_ = d.cmd.Wait()
		if said, err := os.ReadFile(filepath.Join(d.dir, "log")); err == nil && t.Failed() {
			t.Logf("dendrite said:\n%s", said[max(0, len(said)-4000):])
		}
	})
	waitFor(t, "dendrite", func() bool {
		resp, err := http.Get(d.base + "/_matrix/client/versions")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil && resp.StatusCode == http.StatusOK
	})

	return d
}

// matrixPerson is someone at a client.
type matrixPerson struct {
	*dendrite
	id, token, device string
}

func (d *dendrite) person(name string) *matrixPerson {
	d.t.Helper()
	p := &matrixPerson{dendrite: d}
	var done struct {
		ID     string `json:"user_id"`
		Token  string `json:"access_token"`
		Device string `json:"device_id"`
	}
	p.call(http.MethodPost, "/register", map[string]any{"username": name, "password": "of " + name + " alone",
		"auth": map[string]string{"type": "m.login.dummy"}}, &done)
	p.id, p.token, p.device = done.ID, done.Token, done.Device

	return p
}

func (p *matrixPerson) call(method, path string, body, result any) {
	p.t.Helper()
	data, err := json.Marshal(body)
	must(p.t, err)
	req, err := http.NewRequest(method, p.base+"/_matrix/client/v3"+path, bytes.NewReader(data))
	must(p.t, err)
	if p.token != "" {
		req.Header.Set("Authorization", "Bearer "+p.token)
	}
	resp, err := http.DefaultClient.Do(req)
	must(p.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(p.t, err)
	if resp.StatusCode != http.StatusOK {
		p.t.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, text)
	}
	if result != nil {
		must(p.t, json.Unmarshal(text, result))
	}
}

// room makes a room and invites someone.
func (p *matrixPerson) room(invited string) string {
	p.t.Helper()
	var made struct {
		ID string `json:"room_id"`
	}
	p.call(http.MethodPost, "/createRoom", map[string]any{"preset": "private_chat", "invite": []string{invited}}, &made)
	return made.ID
}

// say says something and returns the id of the event.
func (p *matrixPerson) say(room, id string, content map[string]any) string {
	p.t.Helper()
	var done struct {
		ID string `json:"event_id"`
	}
	p.call(http.MethodPut, "/rooms/"+url.PathEscape(room)+"/send/m.room.message/"+id, content, &done)
	return done.ID
}

// heard is what others have said in a room, the newest first.
func (p *matrixPerson) heard(room string) string {
	p.t.Helper()
	var page struct {
		Chunk []struct {
			Sender  string `json:"sender"`
			Content struct {
				Body string `json:"body"`
			} `json:"content"`
		} `json:"chunk"`
	}
	p.call(http.MethodGet, "/rooms/"+url.PathEscape(room)+"/messages?dir=b&limit=200", nil, &page)
	var b strings.Builder
	for _, e := range page.Chunk {
		if e.Sender != p.id {
			b.WriteString(e.Content.Body + "\n")
		}
	}
	return b.String()
}

func (p *matrixPerson) members(room string) string {
	p.t.Helper()
	var in struct {
		Joined map[string]any `json:"joined"`
	}
	p.call(http.MethodGet, "/rooms/"+url.PathEscape(room)+"/joined_members", nil, &in)
	return fmt.Sprint(in.Joined)
}

// TestMatrixServer holds a conversation over a real dendrite while the daemon is killed again
// and again. It joins the room of who has access, and not that of someone else.
func TestMatrixServer(t *testing.T) {
	t.Parallel()
	server := newDendrite(t)
	bot, ada, eve := server.person("daybot"), server.person("ada"), server.person("eve")
	room, foreign := ada.room(bot.id), eve.room(bot.id)
	d := &process{t: t, workspace: t.TempDir(), env: []string{"MATRIX_TOKEN=" + bot.token}}
	write(t, filepath.Join(d.workspace, home, "settings.yaml"), server.settings(ada.id, ""))
	converse(t, d, "dendrite", func(word string) {
		waitFor(t, "the bot in the room", func() bool { return strings.Contains(ada.members(room), bot.id) })
		ada.say(room, word, map[string]any{"msgtype": "m.text", "body": word})
	}, func() string { return ada.heard(room) })
	if in := eve.members(foreign); strings.Contains(in, bot.id) {
		t.Errorf("the bot accepted the invitation of somebody who is not in allow: %s", in)
	}
}
