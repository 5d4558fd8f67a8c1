package machines

import (
	"fmt"
	"path/filepath"
	"strings"

	"daycare/engine/freeport"
)

// Servers are NATS servers of a daycare that has one, each a process.
type Servers struct {
	list     []*server
	releases []func() // of their addresses
}

// A server is one of NATS.
type server struct {
	process
	store, address string
}

// NewServers makes n servers that keep what they have in dir, and come back under their addresses. They do not run yet.
func NewServers(binary, dir string, n int) (*Servers, error) {
	s := &Servers{}
	var peers []string
	for range n {
		at, err := s.reserve()
		if err != nil {
			return s, err
		}
		peers = append(peers, at)
	}
	for i := range n {
		at, err := s.reserve()
		if err != nil {
			return s, err
		}
		name := fmt.Sprint("n", i)
		one := &server{store: filepath.Join(dir, "nats", name), address: at}
		one.command = []string{binary, "cluster", "server", "--name", name, "--store", one.store, "--listen", at}
		if n > 1 {
			one.command = append(one.command, "--peer-listen", peers[i], "--peers", strings.Join(peers, ","))
		}
		one.said = filepath.Join(dir, name+".log")
		s.list = append(s.list, one)
	}

	return s, nil
}

func (s *Servers) reserve() (string, error) {
	at, release, err := freeport.Reserve()
	if err == nil {
		s.releases = append(s.releases, release)
	}

	return at, err
}

// Start starts those that do not run, and waits until they all do.
func (s *Servers) Start() error {
	for _, one := range s.list {
		if !one.alive() {
			if err := one.start(); err != nil {
				return err
			}
		}
	}
	for _, one := range s.list {
		if err := one.wait("the server "+one.address, func() bool { return strings.Contains(one.log(), " ready on ") }); err != nil {
			return err
		}
	}

	return nil
}

// URLs are where daycares connect.
func (s *Servers) URLs() (list []string) {
	for _, one := range s.list {
		list = append(list, "nats://"+one.address)
	}
	return list
}

// PIDs are the processes that run.
func (s *Servers) PIDs() (list []int) {
	for _, one := range s.list {
		if one.alive() {
			list = append(list, one.cmd.Process.Pid)
		}
	}

	return list
}

// Kill kills all of them.
func (s *Servers) Kill() {
	for _, one := range s.list {
		one.kill()
	}
}

// End kills them and gives their addresses back.
func (s *Servers) End() {
	s.Kill()
	for _, release := range s.releases {
		release()
	}
}
