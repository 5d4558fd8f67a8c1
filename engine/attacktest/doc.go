// Package attacktest is how tests of attacks say what held them, in one form for all
// packages. Every attack that a test tries has a name, and a class of attacks like it; the
// test logs a line for each one that was held, and fails for one that was not. The test
// TestAttackTable of cmd/daycare runs all of these tests and prints the counts.
package attacktest
