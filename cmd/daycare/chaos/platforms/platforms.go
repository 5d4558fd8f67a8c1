package platforms

import (
	"fmt"
	"net"
	"net/http"
	"strings"
)

// A Platform is a chat platform with one user, who has access. Its functions may be called
// from any goroutine.
type Platform interface {
	Name() string   // the type and the id of its connector
	Sender() string // how messages name the user
	// Settings are those of its connector, without braces. listen is a HOST:PORT on which
	// daycare can listen.
	Settings(listen string) string
	// Write has the user write a message. received is called once, when daycare has said that
	// it has it.
	Write(text string, received func())
	// Press answers a card with its first choice. received is as for Write.
	Press(card string, received func())
	// Said are the messages of the bot that its user sees, oldest first. Notices are among
	// them, and what replaced an earlier one is not.
	Said() []Said
	// Once reports whether the platform takes a message once under its key, however often it
	// is sent.
	Once() bool
	Close()
}

// A Said is one message of the bot.
type Said struct {
	Text string
	Card string // how Press answers it; "": it asks nothing
}

// The platforms, as New has them.
const (
	Telegram = "telegram"
	Matrix   = "matrix"
	WhatsApp = "whatsapp"
)

// Names are all platforms.
var Names = []string{Telegram, Matrix, WhatsApp}

// Environment is what settings name as secrets, as NAME=VALUE.
func Environment() []string {
	return []string{tokenEnv + "=" + token, secretEnv + "=" + secret}
}

const (
	token     = "1:chaos" // of all bots, in a form that each platform has
	secret    = "secret of the app"
	tokenEnv  = "DAYCARE_CHAOS_TOKEN"
	secretEnv = "DAYCARE_CHAOS_APP"
)

// New starts the platform with a name.
func New(name string) (Platform, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	site := &site{name: name, base: "http://" + l.Addr().String(), server: &http.Server{}}
	var p Platform
	switch name {
	case Telegram:
		p, site.server.Handler = newTelegram(site)
	case Matrix:
		p, site.server.Handler = newHomeserver(site)
	case WhatsApp:
		p, site.server.Handler = newGraph(site)
	default:
		l.Close()
		return nil, fmt.Errorf("there is no platform %q, only %s", name, strings.Join(Names, ", "))
	}
	go site.server.Serve(l)

	return p, nil
}

// A site is where a platform is reached.
type site struct {
	name   string
	base   string // http://HOST:PORT
	server *http.Server
}

func (s *site) Name() string { return s.name }

func (s *site) Sender() string { return "Ada" }

func (s *site) Close() { s.server.Close() }

// A fault is what is wrong with an answer that a platform is handed.
type fault int

const (
	fine    fault = iota
	broken        // it takes nothing, like a 500
	busy          // it takes nothing, and says how long to wait
	dropped       // it takes it, and the connection is lost
)

// bad is the fault of the n-th answer, from 1: all kinds early, and then now and then.
func bad(n int) fault {
	switch {
	case n == 2 || n > 6 && n%7 == 0:
		return dropped
	case n == 4:
		return busy
	case n == 6:
		return broken
	}

	return fine
}
