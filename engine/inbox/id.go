package inbox

import (
	"math/rand/v2"
	"sync"

	"github.com/nrednav/cuid2"
)

// NewID returns an id for an item that its sender may have to offer more than once.
func NewID() string { return newID()() }

// newID makes the ids of items. They have to be unique, not secret, so the
// runtime's generator, which the system seeds, will do; it is four times as fast
// as asking the system for every character.
var newID = sync.OnceValue(func() func() string {
	make, err := cuid2.Init(cuid2.WithRandomFunc(rand.Float64))
	if err != nil {
		return cuid2.Generate
	}
	return make
})
