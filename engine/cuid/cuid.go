// Package cuid makes identifiers: cuid2, 24 lower-case letters and digits, the first one a letter.
package cuid

import (
	"math/rand/v2"
	"sync"

	"github.com/nrednav/cuid2"
)

// New returns an id that cannot be guessed.
func New() string { return cuid2.Generate() }

// Unique returns an id for an item, or for anything else whose id has to be unique and not secret: a
// turn, a call, an answer.
func Unique() string { return unique()() }

// unique makes these ids. The runtime's generator, which the system seeds, will do; it is four times as
// fast as asking the system for every character.
var unique = sync.OnceValue(func() func() string {
	make, _ := cuid2.Init(cuid2.WithRandomFunc(rand.Float64)) // only a length can be wrong
	return make
})
