// Package child says how the processes that chaos kills begin.
package child
