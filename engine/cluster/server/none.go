//go:build !natsserver

package server

import (
	"context"
	"errors"
)

var errNotBuilt = errors.New("this build has no NATS server\n" +
	"run the server of nats.io with sync_interval: always (see docs/cluster.md), or build daycare with it:\n" +
	"  go build -trimpath -tags natsserver ./cmd/daycare")

// Here reports whether this program has the server.
const Here = false

// Run fails: this build has no server.
func Run(context.Context, Options, func(address string)) error { return errNotBuilt }
