package main

import (
	"daycare/cmd/daycare/daemon"
)

// production is the wiring of the real program.
func production() wiring {
	return wiring{start: daemon.Run, offline: daemon.Look, inProcess: daemon.Inside}
}
