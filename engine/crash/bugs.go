package crash

// Bug reports whether a seeded bug is switched on. Seeded bugs are defects put
// in on purpose, so that the harness can show that it would catch them; they
// exist only in a binary built with the tag seededbugs, where DAYCARE_BUG names
// the one to switch on: nosync, ackearly, nostart, sendfirst, rerun, twice,
// lifo, nodedupe.
func Bug(name string) bool { return seeded(name) }
