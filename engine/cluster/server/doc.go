// Package server runs a NATS server with the settings that the logs of agents need: JetStream
// that syncs each message before it says that it has it. It is a process of its own: one that
// ended together with a daycare would cost the cluster an election each time. The server adds 9 MB
// to the program, and work to each of its starts: it is in builds with the tag natsserver.
package server
