package irc

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ergochat/irc-go/ircmsg"
)

// greet registers: abilities, SASL, nick.
func (s *session) greet() error {
	_ = s.conn.SetDeadline(time.Now().Add(greetTime))
	for _, line := range [][]string{{"CAP", "LS", "302"}, {"NICK", s.c.o.Nick}, {"USER", s.c.o.Nick, "0", "*", "daycare"}} {
		if err := s.write(line...); err != nil {
			return err
		}
	}

	for {
		m, err := s.next()
		if err != nil {
			return err
		}
		welcome, err := s.greeting(m)
		if err != nil || welcome {
			_ = s.conn.SetDeadline(time.Time{})
			return err
		}
	}
}

// greeting answers one line of the greeting.
func (s *session) greeting(m ircmsg.Message) (welcome bool, err error) {
	o := s.c.o
	switch m.Command {
	case "CAP":
		return false, s.ability(m)
	case "AUTHENTICATE":
		plain := base64.StdEncoding.EncodeToString([]byte("\x00" + o.Account + "\x00" + s.c.password))
		return false, s.write("AUTHENTICATE", plain)
	case "903": // logged in
		return false, s.write("CAP", "END")
	case "902", "904", "905", "906", "908":
		return false, fmt.Errorf("the account %s was refused\nset its password with: daycare auth set %s", o.Account, o.ID)
	case "432":
		return false, fmt.Errorf("the server rejects the nick %s", s.me())
	case "433", "436", "437": // taken
		s.nick.Store(s.me() + "_")
		if len(s.me()) > 30 {
			return false, errors.New("all nicks are in use")
		}
		return false, s.write("NICK", s.me())
	case "464", "465":
		return false, errors.New("the server refuses the connection: " + last(m))
	case "421": // it does not know CAP, and will continue without
		if o.Account != "" {
			return false, errors.New("the server does not support accounts: leave account empty")
		}
	case "PING":
		return false, s.write("PONG", last(m))
	case "ERROR":
		return false, fmt.Errorf("the server said: %s", last(m))
	case "001":
		if len(m.Params) > 0 {
			s.nick.Store(m.Params[0])
		}
		return true, nil
	}

	return false, nil
}

// ability answers a line about abilities: asks for those we use, logs in, or ends
// the talk about them.
func (s *session) ability(m ircmsg.Message) error {
	if len(m.Params) < 3 {
		return nil
	}
	offered := strings.Fields(last(m))
	switch m.Params[1] {
	case "LS":
		for _, name := range offered {
			name, _, _ = strings.Cut(name, "=")
			s.caps[name] = true
		}
		if m.Params[2] == "*" { // there is more
			return nil
		}

		var ask []string
		for _, name := range wanted {
			if s.caps[name] && (name != "sasl" || s.c.o.Account != "") {
				ask = append(ask, name)
			}
		}

		if !s.caps["sasl"] && s.c.o.Account != "" {
			return errors.New("the server does not support accounts: leave account empty")
		}
		s.caps = map[string]bool{}
		if len(ask) == 0 {
			return s.write("CAP", "END")
		}
		return s.write("CAP", "REQ", strings.Join(ask, " "))
	case "ACK":
		for _, name := range offered {
			s.caps[name] = true
		}
		if s.caps["sasl"] {
			return s.write("AUTHENTICATE", "PLAIN")
		}
		return s.write("CAP", "END")
	case "NAK":
		return s.write("CAP", "END")
	}

	return nil
}
