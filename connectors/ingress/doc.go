// Package ingress is the listener of connectors that services post to: how long a
// request may take, how it is shut down, and where it listens. What a request has
// to prove and how it is answered is its connector's.
package ingress
