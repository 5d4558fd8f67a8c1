package term

import (
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"runtime"
)

// OpenInBrowser shows an address in the user's browser. The address may come from a service: it
// is passed to no shell.
func OpenInBrowser(address string) error {
	if u, err := url.Parse(address); err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("it is not a web address")
	}
	program := "xdg-open"
	if runtime.GOOS == "darwin" {
		program = "open"
	}
	if err := exec.Command(program, address).Start(); err != nil {
		return fmt.Errorf("start %s: %w", program, err)
	}

	return nil
}
