package mcp

import (
	"io"
	"net/http"
	"time"

	"daycare/engine/finding"
	"daycare/engine/message"
)

const (
	// startIn bounds the start of a server, with its first list of tools.
	startIn = time.Minute
	// idleFor is how long a server runs without a call.
	idleFor = 10 * time.Minute
	// meetAtOnce is how many servers that were never seen are started at once.
	meetAtOnce = 8
	// maxMessage bounds one message of a server, in bytes.
	maxMessage = 16 << 20
	// maxTools bounds the tools of one server.
	maxTools = 5000
)

// A Server is what the settings say of one.
type Server struct {
	ID      string
	Timeout time.Duration // of one call
	// Command and URL say in a word what it is; the other one is empty.
	Command, URL string
	// Stamp differs whenever the settings of the server do.
	Stamp string
}

// Options are what servers need of their world.
type Options struct {
	Dir     string // .daycare/mcp
	Version string // of daycare
	// Looking: no server is started because agents could have its tools.
	Looking bool
	// Start starts the program of a server: its standard output and input. errors takes what it
	// writes to its standard error. Close ends it.
	Start func(s Server, errors io.Writer) (io.ReadWriteCloser, error)
	// Headers are those of each request to a service.
	Headers func(s Server) (http.Header, error)
	// Logins keep users' logins at services; nil: none.
	Logins Logins
	// WriteFile replaces a file of Dir durably, WriteDraft without waiting for the disk; nil:
	// nothing is written.
	WriteFile, WriteDraft func(path string, data []byte) error
	// Keep stores a file that a tool answered with.
	Keep func(name, mime string, data []byte) (message.File, error)
	// Budget is how many tokens the tools may add to each prompt before they are found by a
	// search instead; nil: any number.
	Budget func() int
	// Read reports what is wrong with a file, or no longer is.
	Read func(path string, found []finding.Finding)
}
