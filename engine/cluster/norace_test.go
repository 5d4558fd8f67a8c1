//go:build !race

package cluster

import "testing"

// What repeats the same for every request, for many files and for many lives. race_test.go does it for some of them,
// with the race detector.

// modelLives are the lives that TestModel plays, unless -rapid.checks says otherwise.
const modelLives = "100"

func TestModel(t *testing.T) {
	t.Parallel()
	lives(t)
}

func TestManyFiles(t *testing.T) {
	t.Parallel()
	manyFiles(t, 5000)
}

func TestAnExportOfWhichARequestIsRefused(t *testing.T) {
	t.Parallel()
	exportRefused(t, 1)
}

func TestAnImportOfWhichARequestIsRefused(t *testing.T) {
	t.Parallel()
	importRefused(t, 1)
}

func TestALifeOfWhichARequestIsRefused(t *testing.T) {
	t.Parallel()
	lifeRefused(t, 1)
}
