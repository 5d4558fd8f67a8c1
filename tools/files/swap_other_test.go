//go:build !linux

package files

import "os"

// exchange swaps two names, with moments in which one is missing.
func exchange(a, b string) {
	tmp := a + ".swap"
	os.Rename(a, tmp)
	os.Rename(b, a)
	os.Rename(tmp, b)
}
