package term

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	xterm "golang.org/x/term"
)

// Answer asks for a line; an empty one is the usual answer.
func (s *Streams) Answer(question, usual string) (string, error) {
	s.Say("%s", question)
	if usual != "" {
		s.Say(" [%s]", usual)
	}
	s.Say(": ")
	line, err := readLine(s.In)
	if err != nil {
		s.Say("\n")
		return "", ErrInterrupted
	}

	return cmp.Or(strings.TrimSpace(line), usual), nil
}

// readLine reads no byte beyond the line, so that a secret may be asked for next.
func readLine(r io.Reader) (string, error) {
	var line []byte
	for one := make([]byte, 1); ; {
		n, err := r.Read(one)
		switch {
		case n > 0 && one[0] == '\n':
			return string(line), nil
		case n > 0:
			line = append(line, one[0])
		case err != nil:
			return "", err
		}
	}
}

// Agrees asks a user a question that is answered with yes or no.
func (s *Streams) Agrees(question string) bool {
	s.Say("%s [y/N] ", question)
	line, err := readLine(s.In)
	answer := strings.ToLower(strings.TrimSpace(line))
	return err == nil && (answer == "y" || answer == "yes")
}

// Yes asks a question; an empty answer is yes.
func (s *Streams) Yes(question string) bool {
	s.Say("%s", question)
	var answer string
	_, err := fmt.Fscanln(s.In, &answer)
	return err != nil && err.Error() == "unexpected newline" || strings.HasPrefix(strings.ToLower(answer), "y")
}

// Hidden asks on the terminal for a line that is not shown. Whatever ends the program
// meanwhile leaves a terminal behind that shows what is typed.
func (c *App) Hidden(prompt string) (string, error) {
	f, ok := c.In.(*os.File)
	if !ok {
		return "", errors.New("there is no terminal")
	}
	before, err := xterm.GetState(int(f.Fd()))
	if err != nil {
		return "", err
	}

	restore := func() {
		_ = xterm.Restore(int(f.Fd()), before) // the program ends; an error cannot be reported any more
		c.Say("\n")
	}
	c.beforeLeaving(restore)
	defer c.beforeLeaving(nil)
	c.Say("%s: ", prompt)
	data, err := xterm.ReadPassword(int(f.Fd()))
	c.Say("\n")
	if errors.Is(err, io.EOF) {
		err = ErrInterrupted
	}

	return string(data), err
}
