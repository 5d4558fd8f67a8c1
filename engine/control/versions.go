package control

import (
	"errors"
	"fmt"
	"net/http"

	"daycare/engine/fault"
	"daycare/engine/release"
)

// versionHeader is the version of daycare of who sends it: of the daemon in answers, of the
// client in requests.
const versionHeader = "Daycare-Version"

// MachineHeader names, in an answer that another machine of a cluster gave, that machine. In a request it is the process of the
// machine that asks in the name of a client.
const MachineHeader = "Daycare-Machine"

// sayVersion adds the version of the daemon to all answers.
func sayVersion(version string, next http.Handler) http.Handler {
	if version == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(versionHeader, version)
		next.ServeHTTP(w, r)
	})
}

// Introduce makes the client send its version with each request. differs is called if a response
// says that the daemon has another version. Call it before the client is used.
func (c *wire) Introduce(version string, differs func(theirs string)) {
	c.version, c.differs = version, differs
}

// meet looks at the version of who answered.
func (c *wire) meet(resp *http.Response) {
	theirs := resp.Header.Get(versionHeader)
	if c.differs != nil && theirs != "" && theirs != c.version {
		c.differs(theirs)
	}
}

// unknownTo explains a route that the daemon does not have: it has another version, or is of a
// time when answers did not say it.
func (c *wire) unknownTo(resp *http.Response, err error) error {
	theirs, asked := resp.Header.Get(versionHeader), resp.Request
	if c.version == "" || theirs == c.version || !errors.Is(err, fault.NoRoute) {
		return err
	}
	named := "older"
	do := "restart it: daycare restart"
	switch {
	case theirs != "" && release.Compare(theirs, c.version) > 0:
		named = fmt.Sprintf("newer (%s, this program is %s)", theirs, c.version)
		do = "use the newer program: daycare update"
	case theirs != "":
		named = fmt.Sprintf("older (%s, this program is %s)", theirs, c.version)
	}

	return fault.OtherVersion.Advises(do).
		Says("the daemon is %s and does not know %s %s", named, asked.Method, asked.URL.Path)
}
