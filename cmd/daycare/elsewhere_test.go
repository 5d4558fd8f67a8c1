//go:build !race && natsserver

package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"daycare/engine/address"
	"daycare/engine/control"
	"daycare/engine/permission"
)

// The gate of a task runs on the machine that has the task's agent, with the rights that the agent has there, whichever machine
// fires it: what another one has in its folder of the agent is from before.
func TestTheGateOfAnAgentElsewhere(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs two daemons and a server")
	}
	t.Parallel()
	c := newCrew(t, 2)
	for machine := range c.all {
		name := fmt.Sprint("trainer", machine)
		write(t, filepath.Join(c.all[machine].workspace, "here.txt"), fmt.Sprint("the file of machine ", machine))
		client, err := c.client(1 - machine)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		a, err := client.Create(t.Context(), control.NewAgent{Type: string(address.Permanent), Name: name})
		if err != nil {
			t.Fatal(err)
		}
		for file, change := range map[string][2]string{"state.json": {`"web": false`, `"web": true`},
			"descriptor.json": {`"type"`, fmt.Sprintf(`"node": "m%d", "type"`, machine)}} {
			text, hash, err := client.Folders().ReadFile(t.Context(), a.ID, file)
			changed := bytes.Replace(text, []byte(change[0]), []byte(change[1]), 1)
			if err == nil && !bytes.Equal(changed, text) {
				err = client.Folders().WriteFile(t.Context(), a.ID, file, changed, hash)
			}
			if err != nil || bytes.Equal(changed, text) {
				t.Fatalf("%s: %v\n%s", file, err, text)
			}
		}
		waitFor(t, "its machine to know the agent", func() bool {
			at, err := client.Machine(t.Context(), name)
			return err == nil && at == fmt.Sprint("m", machine)
		})
		if err := client.Grant(t.Context(), a.ID, control.Granting{Permission: "@exec:cat here.txt"}); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(c.all[0].workspace, home, "cron", name, "TASK.md"), "---\nagentId: "+a.ID+"\nevery: 24h\n"+
			"gate: { command: \"cat here.txt\", permissions: [\"@web\"] }\n---\nTrain.\n")
		waitFor(t, "both machines to have the task", func() bool {
			return strings.Contains(c.run(0, "cron", "ls"), name) && strings.Contains(c.run(1, "cron", "ls"), name)
		})

		c.run(machine, "cron", "run", name)
		waitFor(t, "the gate to open with the file of its machine", func() bool {
			got, err := c.texts(machine, name)
			return err == nil && len(got) == 1 && strings.Contains(got[0], fmt.Sprint("the file of machine ", machine))
		})
		c.run(1-machine, "permissions", "revoke", name, "@web")
		waitFor(t, "the first run to end", func() bool { return strings.Contains(c.run(machine, "cron", "runs", name), " ran ") })
		c.run(machine, "cron", "run", name)
		waitFor(t, "the gate to wait for an approval", func() bool {
			return strings.Contains(c.run(machine, "cron", "runs", name), "waits for approval")
		})
		if got, err := c.texts(machine, name); err != nil || len(got) != 1 {
			t.Errorf("after its right was revoked: %q, %v", got, err)
		}

		asks, err := client.Permissions(t.Context())
		if err != nil || len(asks) != 1 {
			t.Fatalf("requests: %+v, %v", asks, err)
		}
		if err := client.Decide(t.Context(), asks[0].Token, string(permission.Once), "me"); err != nil {
			t.Fatal(err)
		}
		c.run(machine, "cron", "run", name)
		waitFor(t, "the gate to open once more", func() bool {
			got, err := c.texts(machine, name)
			return err == nil && len(got) == 2
		})
		for _, path := range []string{"/v1/agents/" + a.ID + "/gate", "/gates/" + a.ID} {
			if status := c.posts(1-machine, path, `{"dir":".","gate":{"command":"cat here.txt"}}`); status != http.StatusNotFound {
				t.Errorf("a client has a gate run by POST %s: %d", path, status)
			}
		}
	}
}

// posts is the status with which the API of a machine answers a client that posts something to it.
func (c *crew) posts(machine int, path, body string) int {
	c.t.Helper()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(c.all[machine].workspace, home, control.SocketName))
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}
	resp, err := client.Post("http://daycare"+path, "application/json", strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()

	return resp.StatusCode
}
