// Package cluster has the commands about several machines that work on the same agents.
package cluster
