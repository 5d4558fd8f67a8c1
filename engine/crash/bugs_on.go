//go:build seededbugs

package crash

import "os"

func seeded(name string) bool { return os.Getenv("DAYCARE_BUG") == name }
