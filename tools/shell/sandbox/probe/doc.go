// Package probe finds the best sandbox that works here, by trying the ways out of it: see package sandbox.
//
// The program in the sandbox is the helper, in the mode that this package begins. It is a package of its own because
// it needs net and os/exec, without which the helpers of every command begin earlier.
package probe
