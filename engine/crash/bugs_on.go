//go:build seededbugs

package crash

import (
	"os"
	"sync"
)

func seeded(name string) bool { return os.Getenv("DAYCARE_BUG") == name }

var kept sync.Map // by name

func once(name string) bool {
	_, before := kept.LoadOrStore(name, true)
	return !before
}

func swapped(name string, value any) any {
	before, ok := kept.Swap(name, value)
	if !ok {
		return value
	}

	return before
}
