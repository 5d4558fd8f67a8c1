//go:build race

package cluster

import "testing"

// What norace_test.go does for all requests, more files and more lives.

const modelLives = "15"

func TestModelOfSomeLives(t *testing.T) {
	t.Parallel()
	lives(t)
}

func TestSomeFiles(t *testing.T) {
	t.Parallel()
	manyFiles(t, 1000)
}

func TestAnExportOfWhichSomeRequestsAreRefused(t *testing.T) {
	t.Parallel()
	exportRefused(t, 7)
}

func TestAnImportOfWhichSomeRequestsAreRefused(t *testing.T) {
	t.Parallel()
	importRefused(t, 7)
}

func TestALifeOfWhichSomeRequestsAreRefused(t *testing.T) {
	t.Parallel()
	lifeRefused(t, 7)
}
