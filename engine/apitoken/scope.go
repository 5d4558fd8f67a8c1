package apitoken

import (
	"slices"
	"strings"
)

// A Scope is what a token may do with the API.
type Scope string

const (
	Read    Scope = "read"    // look at agents, histories, requests and events
	Chat    Scope = "chat"    // talk to agents, and read
	Approve Scope = "approve" // answer approval requests, and read
	Admin   Scope = "admin"   // everything
)

// Scopes are all scopes, the weakest first.
var Scopes = []Scope{Read, Chat, Approve, Admin}

// Names lists scopes for users.
func Names(scopes []Scope) string {
	names := make([]string, len(scopes))
	for i, s := range scopes {
		names[i] = string(s)
	}

	return strings.Join(names, ", ")
}

// Rights are what a caller of the API may do. The zero value may do nothing.
type Rights struct {
	Scopes []Scope
	Agents []string // ids of the only agents that it is about; nil: all
}

// Everything is what the owner's socket and the secret of control.listen may do.
var Everything = Rights{Scopes: []Scope{Admin}}

// Allow reports whether the rights include a scope: admin includes all scopes, and
// every scope includes read.
func (r Rights) Allow(need Scope) bool {
	return slices.ContainsFunc(r.Scopes, func(s Scope) bool { return s == need || s == Admin || need == Read })
}

// Restricted reports whether the rights are about some agents only.
func (r Rights) Restricted() bool { return r.Agents != nil }

// Know reports whether the rights are about an agent; "" is what belongs to none.
func (r Rights) Know(agent string) bool { return !r.Restricted() || slices.Contains(r.Agents, agent) }
