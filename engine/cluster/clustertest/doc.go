// Package clustertest runs a NATS server in the process of a test.
package clustertest
