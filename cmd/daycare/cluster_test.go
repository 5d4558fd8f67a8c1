//go:build !race && natsserver

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	chaosmachines "daycare/cmd/daycare/chaos/machines"
	"daycare/engine/control"
	"daycare/engine/freeport"
)

// A natsServer is a NATS server that runs as a process of its own.
type natsServer struct {
	t    *testing.T
	args []string // of cluster server
	env  []string
	cmd  *exec.Cmd
	url  string
}

// start starts the server and waits until it is ready.
func (s *natsServer) start() {
	s.t.Helper()
	said := &loudspeaker{}
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Logf("the server said: %s", said)
		}
	})
	s.cmd = exec.Command("daycare", append([]string{"cluster", "server"}, s.args...)...)
	s.cmd.Env = append(os.Environ(), s.env...)
	s.cmd.Stdout, s.cmd.Stderr = said, said
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	waitFor(s.t, "the NATS server", func() bool {
		_, rest, ok := strings.Cut(said.String(), " ready on ")
		if ok {
			s.url, _, ok = strings.Cut(rest, "\n")
		}
		return ok
	})
}

func (s *natsServer) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// startServer runs one NATS server and returns its URL.
func startServer(t *testing.T) string {
	t.Helper()
	s := &natsServer{t: t, args: []string{"--store", filepath.Join(t.TempDir(), "nats"), "--listen", "127.0.0.1:0"}}
	s.start()
	t.Cleanup(s.kill)
	return s.url
}

// A crew is machines of one cluster: processes on this one, each with a workspace of its own.
type crew struct {
	t   *testing.T
	all []*process
}

// newCrew starts n machines at one server.
func newCrew(t *testing.T, n int) *crew {
	return newCrewAt(t, n, "", "--join", startServer(t))
}

// newCrewAt starts n machines with settings of their cluster, which end each with ", ", and arguments of start.
func newCrewAt(t *testing.T, n int, settings string, args ...string) *crew {
	return newCrewSaying(t, n, `rules: [ { reply: [ { delay: 5ms, text: "heard {{.Text}}" } ] } ]`, settings, args...)
}

// newCrewSaying is newCrewAt with a script of what agents say.
func newCrewSaying(t *testing.T, n int, script, settings string, args ...string) *crew {
	t.Helper()
	c := &crew{t: t}
	for i := range n {
		p := &process{t: t, workspace: t.TempDir(), args: args, env: []string{"DAYCARE_SECRET_CLUSTER=" + clusterPassword}}
		write(t, filepath.Join(p.workspace, "script.yaml"), script)
		write(t, filepath.Join(p.workspace, home, "settings.yaml"), fmt.Sprintf("cluster: { %sname: m%d }\n", settings, i)+
			"providers: [ { id: scripted, type: scripted, options: { script: script.yaml } } ]\n")
		p.start()
		c.all = append(c.all, p)
	}
	t.Cleanup(func() {
		for _, p := range c.all {
			p.kill()
		}
	})

	return c
}

const clusterPassword = "kept-by-three"

// client connects to a machine.
func (c *crew) client(n int) (*control.Client, error) {
	return control.Dial(filepath.Join(c.all[n%len(c.all)].workspace, home))
}

// run runs a command in the workspace of a machine, and returns what it says.
func (c *crew) run(machine int, args ...string) string {
	c.t.Helper()
	args = append([]string{"--no-input", "--workspace", c.all[machine].workspace}, args...)
	out, err := exec.Command("daycare", args...).CombinedOutput()
	if err != nil {
		c.t.Errorf("daycare %q: %v\n%s", args, err, out)
	}

	return string(out)
}

// post sends a message until some machine accepts it, as a client does that repeats what was not
// acknowledged.
func (c *crew) post(machine int, channel, text string) error {
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); machine++ {
		client, err := c.client(machine)
		if err == nil {
			ctx, cancel := context.WithTimeout(c.t.Context(), 30*time.Second)
			_, err = client.Send(ctx, "", control.Message{Connector: "api", ChannelID: channel, UserID: "u", Text: text, Dedupe: text})
			cancel()
			client.Close()
		}
		if err == nil {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}

	return fmt.Errorf("%s was never accepted", text)
}

// texts are the messages that an agent has read, as a machine shows them.
func (c *crew) texts(machine int, ref string) (list []string, err error) {
	client, err := c.client(machine)
	if err != nil {
		return nil, err
	}
	defer client.Close()

	return chaosmachines.Texts(c.t.Context(), client, ref)
}

// Three servers and machines know each other by certificates and a password. Who has another password or trusts another
// authority gets nowhere. When one of the servers ends, messages go on.
func TestServersKnowTheirMachines(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs three daemons and three servers")
	}
	t.Parallel()
	dir := t.TempDir()
	ca := newAuthority(t, dir)
	var servers []*natsServer
	var peers, urls []string
	for range 3 {
		peers = append(peers, freeport.Take(t))
		urls = append(urls, freeport.Take(t))
	}
	for i := range peers {
		servers = append(servers, &natsServer{t: t, env: []string{"DAYCARE_SECRET_CLUSTER=" + clusterPassword}, args: []string{
			"--name", fmt.Sprint("n", i), "--store", filepath.Join(dir, fmt.Sprint("nats", i)), "--listen", urls[i],
			"--peer-listen", peers[i], "--peers", strings.Join(peers, ","), "--user", "daycare",
			"--tls-cert", ca.cert, "--tls-key", ca.key, "--tls-ca", ca.file}})
		urls[i] = fmt.Sprintf("%q", "tls://"+urls[i])
	}
	var starting sync.WaitGroup
	for _, s := range servers {
		starting.Go(s.start)
		t.Cleanup(func() { s.kill() })
	}
	starting.Wait()

	settings := fmt.Sprintf("servers: [ %s ], replicas: 3, user: daycare, ", strings.Join(urls, ", "))
	c := newCrewAt(t, 3, settings+fmt.Sprintf("tlsCA: %q, ", ca.file))
	for what, one := range map[string]struct{ ca, password string }{
		"another password":  {ca.file, "guessed"},
		"another authority": {newAuthority(t, t.TempDir()).file, clusterPassword},
	} {
		folder := t.TempDir()
		write(t, filepath.Join(folder, home, "settings.yaml"), fmt.Sprintf("cluster: { %stlsCA: %q }\n", settings, one.ca))
		cmd := exec.Command("daycare", "--no-input", "--workspace", folder, "start")
		cmd.Env = append(os.Environ(), "DAYCARE_SECRET_CLUSTER="+one.password)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "join the cluster on") {
			t.Errorf("with %s: %v\n%s", what, err, out)
		}
	}

	servers[0].kill()
	var want []string
	for n := range 6 {
		want = append(want, fmt.Sprint("message ", n))
		if err := c.post(n, "c", want[n]); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, "all messages", func() bool {
		got, err := c.texts(1, "api:c")
		return err == nil && slices.Equal(got, want)
	})
}

// A machine that is stopped while no server answers ends soon, in the middle of a turn, too. What it had accepted is
// there when both are back.
func TestAStopDoesNotWaitForServers(t *testing.T) {
	t.Parallel()
	server := &natsServer{t: t, args: []string{"--store", filepath.Join(t.TempDir(), "nats"), "--listen", freeport.Take(t)}}
	server.start()
	t.Cleanup(func() { server.kill() })
	c := newCrewSaying(t, 1, `rules: [ { reply: [ { delay: 500ms, text: "heard {{.Text}}" } ] } ]`, "", "--join", server.url)
	for _, text := range []string{"rests", "works"} {
		if err := c.post(0, "c", text); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "message "+text, func() bool {
			got, err := c.texts(0, "api:c")
			return err == nil && slices.Contains(got, text)
		})
		server.kill()
		began := time.Now()
		if err := c.all[0].cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- c.all[0].cmd.Wait() }()
		select {
		case err := <-ended:
			t.Logf("%s: ended after %v: %v", text, time.Since(began).Round(time.Millisecond), err)
		case <-time.After(40 * time.Second):
			t.Fatalf("%s: it still runs\n%s", text, &c.all[0].said)
		}
		server.start()
		c.all[0].start()
	}

	if err := c.post(0, "c", "after"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "all messages", func() bool {
		got, err := c.texts(0, "api:c")
		return err == nil && slices.Equal(got, []string{"rests", "works", "after"})
	})
}

// A machine that no server answers says so, and refuses to change an agent instead of waiting.
func TestAMachineWithoutServersSaysSo(t *testing.T) {
	t.Parallel()
	server := &natsServer{t: t, args: []string{"--store", filepath.Join(t.TempDir(), "nats"), "--listen", "127.0.0.1:0"}}
	server.start()
	t.Cleanup(func() { server.kill() })
	c := newCrewSaying(t, 1, `rules: [ { reply: [ { text: "heard {{.Text}}" } ] } ]`, "", "--join", server.url)
	daycare := func(args ...string) string {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		args = append([]string{"--no-input", "--workspace", c.all[0].workspace}, args...)
		out, _ := exec.CommandContext(ctx, "daycare", args...).CombinedOutput() // what it says is looked at
		return string(out)
	}
	if err := c.post(0, "c", "hello"); err != nil {
		t.Fatal(err)
	}

	server.kill()
	waitFor(t, "a status that says so", func() bool {
		out := daycare("cluster", "status")
		return strings.Contains(out, "this machine") && strings.Contains(out, "the servers of the cluster cannot be reached")
	})
	for _, args := range [][]string{{"agents", "rm", "0/", "--force"}, {"agents", "reset", "0/"}, {"send", "0/", "hi"}} {
		if out := daycare(args...); !strings.Contains(out, "the servers or another machine of the cluster do not answer") {
			t.Errorf("%s: %s", args, out)
		}
	}
	if got, err := c.texts(0, "api:c"); err != nil || !slices.Equal(got, []string{"hello"}) {
		t.Error(got, err)
	}
}

// An authority has a certificate of 127.0.0.1 from an authority of its own, in PEM files.
type authority struct{ file, cert, key string }

func newAuthority(t *testing.T, dir string) authority {
	t.Helper()
	a := authority{filepath.Join(dir, "ca.pem"), filepath.Join(dir, "server.pem"), filepath.Join(dir, "server.key")}
	sign := func(file string, one, by *x509.Certificate, key, signer *ecdsa.PrivateKey) {
		one.SerialNumber, one.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(time.Hour)
		data, err := x509.CreateCertificate(rand.Reader, one, by, key.Public(), signer)
		if err != nil {
			t.Fatal(err)
		}
		write(t, file, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: data})))
	}
	root := &x509.Certificate{Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign}
	leaf := &x509.Certificate{Subject: pkix.Name{CommonName: "server"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sign(a.file, root, root, rootKey, rootKey)
	sign(a.cert, leaf, root, leafKey, rootKey)
	data, err := x509.MarshalPKCS8PrivateKey(leafKey)
	if err != nil {
		t.Fatal(err)
	}
	write(t, a.key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: data})))

	return a
}

// What belongs to all machines outlives each of them: tasks go on, a request for permission is
// answered on another machine, and memory is there.
func TestHouseOutlivesItsMachines(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs three daemons and a server")
	}
	t.Parallel()
	c := newCrewSaying(t, 3, `rules:
  - contains: ask me
    round: 1
    reply: [ { calls: [ { name: request_permission, arguments: { permission: "@read:/srv/x", reason: "to look" } } ] } ]
  - { after: permission, reply: [ { text: "I was told." } ] }
  - { reply: [ { text: "heard {{.Text}}" } ] }
`, "", "--join", startServer(t))
	run := func(machine int, args ...string) string {
		cmd := exec.Command("daycare", append([]string{"--no-input", "--workspace", c.all[machine].workspace}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			return "" // asked again
		}
		return string(out)
	}
	shows := func(machine int, what string, args ...string) {
		t.Helper()
		waitFor(t, fmt.Sprintf("machine %d to show %s for %q", machine, what, args), func() bool {
			return strings.Contains(run(machine, args...), what)
		})
	}
	memory := filepath.Join("memory", "entities", "anna.md")
	write(t, filepath.Join(c.all[1].workspace, home, memory), "likes tea")
	run(1, "cron", "add", "--every", "1h", "--name", "tick", "tick now")
	for machine := range c.all {
		shows(machine, "tick", "cron", "ls")
		shows(machine, "tick runs", "cron", "run", "tick")
		waitFor(t, "the run", func() bool { return strings.Count(run(machine, "cron", "runs", "tick"), "by hand") == machine+1 })
	}
	asked := exec.Command("daycare", "--no-input", "--workspace", c.all[0].workspace, "chat", "ask me")
	if out, err := asked.CombinedOutput(); !strings.Contains(string(out), "needs approval") {
		t.Fatalf("chat says %s, %v", out, err)
	}
	token := ""
	waitFor(t, "the request on another machine", func() bool {
		files, err := filepath.Glob(filepath.Join(c.all[2].workspace, home, "permissions", "*.json"))
		if err == nil && len(files) == 1 {
			token = strings.TrimSuffix(filepath.Base(files[0]), ".json")
		}
		return token != ""
	})
	c.all[0].kill()

	shows(2, "@read:/srv/x", "permissions", "ls")
	waitFor(t, "the answer to be accepted", func() bool { return run(2, "permissions", "allow", token) != "" })
	shows(1, "I was told.", "agents", "tail", "main")
	waitFor(t, "the request to be gone", func() bool { return !strings.Contains(run(1, "permissions", "ls"), "/srv/x") })
	shows(2, "tick runs", "cron", "run", "tick")
	waitFor(t, "the run after the death", func() bool { return strings.Count(run(1, "cron", "runs", "tick"), "by hand") == 4 })
	if data, err := os.ReadFile(filepath.Join(c.all[2].workspace, home, memory)); err != nil || string(data) != "likes tea" {
		t.Errorf("memory has %q, %v", data, err)
	}
	c.all[0].start()
	waitFor(t, "the machine that is back to have no request", func() bool {
		return strings.Contains(run(0, "cron", "runs", "tick"), "by hand") && !strings.Contains(run(0, "permissions", "ls"), token) &&
			strings.Count(run(0, "cron", "runs", "tick"), "by hand") == 4
	})
}

// doctor and status name a machine with different settings for as long as they differ.
func TestMachinesAreCompared(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs two daemons and a server")
	}
	t.Parallel()
	c := newCrew(t, 2)
	says := func(args ...string) string {
		out, _ := exec.Command("daycare", append([]string{"--no-input", "--workspace", c.all[0].workspace}, args...)...).CombinedOutput()
		return string(out) // doctor fails where it finds something
	}
	const want = "has other settings of agents"
	if got := says("doctor"); strings.Contains(got, "of the cluster has") {
		t.Errorf("of the same machines doctor says:\n%s", got)
	}
	settings := filepath.Join(c.all[1].workspace, home, "settings.yaml")
	before, err := os.ReadFile(settings)
	if err != nil {
		t.Fatal(err)
	}
	write(t, settings, string(before)+"agents: { queue: collect }\n")
	waitFor(t, "doctor to tell them apart", func() bool { return strings.Contains(says("doctor"), want) })
	if got := says("cluster", "status"); !strings.Contains(got, "other settings of agents") {
		t.Errorf("status says\n%s", got)
	}
	write(t, settings, string(before))
	waitFor(t, "doctor to find them the same", func() bool { return !strings.Contains(says("doctor"), want) })
}

// Every command works on every machine, wherever the agent is: what one machine made another one
// lists, reads, writes to and removes; and a copy of all works alone.
func TestEveryMachineKnowsAll(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs two daemons and a server")
	}
	t.Parallel()
	c := newCrew(t, 2)
	if out := c.run(0, "chat", "hello"); !strings.Contains(out, "heard hello") {
		t.Errorf("the answer is %q", out)
	}
	waitFor(t, "the other machine to know the agent", func() bool { return strings.Contains(c.run(1, "agents", "ls"), "main") })
	file := filepath.Join(c.all[1].workspace, "note.txt")
	write(t, file, "what the file says")
	if out := c.run(1, "send", "main", "there", "--wait", "--file", file); !strings.Contains(out, "heard there") {
		t.Errorf("the answer on the other machine is %q", out)
	}
	for machine := range c.all {
		if got, err := c.texts(machine, "main"); err != nil || !slices.Equal(got, []string{"hello", "there"}) {
			t.Errorf("machine %d shows %q, %v", machine, got, err)
		}
	}
	if out := c.run(1, "cluster", "status"); !strings.Contains(out, "m0") || !strings.Contains(out, "m1") {
		t.Errorf("cluster status says %q", out)
	}

	for machine := range c.all { // both have a folder of the agent, and one of them the newest
		if out := c.run(machine, "cost", "--json"); !strings.Contains(out, `"total":{"key":"total","calls":2,`) {
			t.Errorf("on machine %d the cost is %s", machine, out)
		}
	}

	alone := t.TempDir()
	if out := c.run(0, "cluster", "export", alone); !strings.Contains(out, "1 agent ") {
		t.Errorf("export says %q", out)
	}
	copied := &process{t: t, workspace: alone}
	copied.start()
	defer copied.kill()
	client, err := control.Dial(filepath.Join(alone, home))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	page, err := client.History(t.Context(), "main", 0, 100)
	if err != nil || !strings.Contains(fmt.Sprintf("%s", page.Records), "heard there") {
		t.Errorf("the copy has %s, %v", page.Records, err)
	}

	for machine := range c.all { // it is in the trash of one of them
		c.run(1, "agents", "rm", "main", "--force")
		waitFor(t, "the first machine to forget the agent", func() bool { return !strings.Contains(c.run(0, "agents", "ls"), "main") })
		if out := c.run(machine, "agents", "trash"); !strings.Contains(out, "main") {
			t.Errorf("machine %d has in the trash: %q", machine, out)
		}
		c.run(machine, "agents", "restore", "main")
		waitFor(t, "both know it again", func() bool {
			return strings.Contains(c.run(0, "agents", "ls"), "main") && strings.Contains(c.run(1, "agents", "ls"), "main")
		})
		if got, err := c.texts(machine, "main"); err != nil || !slices.Equal(got, []string{"hello", "there"}) {
			t.Errorf("after it was restored, machine %d shows %q, %v", machine, got, err)
		}
	}
	if kept, err := filepath.Glob(filepath.Join(alone, home, "files", "*note.txt")); err != nil || len(kept) != 1 {
		t.Errorf("the copy has the attachments %q, %v", kept, err)
	}
}
