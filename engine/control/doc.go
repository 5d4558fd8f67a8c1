// Package control is the only API of daycare: HTTP and JSON over .daycare/daycare.sock, with
// server-sent events, as handler and as client. Every user interface is a client of it: the command
// line, the terminal, the web, other programs.
//
// Where to look: ops.go is the list of operations, agents.go, folders.go and the like serve a group
// of them, table.go joins the groups, op.go encodes requests and answers, api.go has the bodies of
// requests, errors.go turns errors into answers and back, feed.go sends events, server.go, unix.go and tcp.go decide
// who can connect, client.go is the client, translate.go serves clients of another API. Package
// openapi describes all of it for other programs.
package control
