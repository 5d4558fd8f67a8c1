// Package machines plays several machines that share agents: daemons in workspaces of their own,
// NATS servers, and between them wires that can be cut. It kills, stops and cuts off each in the
// middle of its work, wipes the servers, and compares what the conversations have in the end with
// what was acknowledged.
//
// Where to look: world.go is what runs, wire.go what is between, talk.go the users and what they
// check, ways.go the ways to die, bugs.go the defects put in on purpose, report.go the table.
package machines
