package crash

// Bug reports whether a seeded bug is switched on. Seeded bugs are defects put
// in on purpose, so that the harness can show that it would catch them; they
// exist only in a binary built with the tag seededbugs, where DAYCARE_BUG names
// the one to switch on. The lists are in cmd/daycare/chaos and cmd/daycare/chaos/machines.
func Bug(name string) bool { return seeded(name) }

// Once is true the first time that it is called with a name: for a seeded bug that does
// its harm once in the life of a process.
func Once(name string) bool { return once(name) }

// Swap keeps a value for the next caller and returns the one that the caller before left:
// for a seeded bug that mixes up what belongs to two messages. The first one gets its own.
func Swap(name string, value any) any { return swapped(name, value) }
