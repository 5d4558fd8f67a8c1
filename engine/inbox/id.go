package inbox

import (
	"math/rand/v2"
	"sync"

	"github.com/nrednav/cuid2"
)

// NewID returns an id for an item, or for anything else whose id has to be unique and not secret: a
// turn, a call, an answer.
func NewID() string { return newID()() }

// newID makes the ids. The runtime's generator, which the system seeds, will do; it is four times as
// fast as asking the system for every character.
var newID = sync.OnceValue(func() func() string {
	make, _ := cuid2.Init(cuid2.WithRandomFunc(rand.Float64)) // only a length can be wrong
	return make
})
