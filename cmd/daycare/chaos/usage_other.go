//go:build !linux

package chaos

import "errors"

// usage is what a process has of memory, descriptors and threads, where the system says so
// in /proc.
func usage(int) (sample, error) {
	return sample{}, errors.New("memory and descriptors of another process are read on Linux only")
}
