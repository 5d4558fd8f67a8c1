//go:build !linux

package watch

import "errors"

// openQueue: kqueue would hold every file open, so that files are looked at instead.
func openQueue() (queue, error) { return noQueue() }

func noQueue() (queue, error) { return nil, errors.ErrUnsupported }
