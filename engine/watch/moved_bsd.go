//go:build darwin || freebsd

package watch

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Moved waits until one of the folders is moved or removed (nil) or ctx ends (its
// error). What happens in the folders does not wake it. gone is called once the watch
// is set: true ends the wait, for what happened before.
func Moved(ctx context.Context, dirs []string, gone func() bool) error {
	queue, err := unix.Kqueue()
	if err != nil {
		return fmt.Errorf("watch for moves: %w", err)
	}
	defer unix.Close(queue)
	unix.CloseOnExec(queue)
	end, closed, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("watch for moves: %w", err)
	}
	defer end.Close()
	defer closed.Close()
	changes := make([]unix.Kevent_t, len(dirs)+1)
	for i, dir := range dirs {
		fd, err := unix.Open(dir, watchOnly|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("watch %s for moves: %w", dir, err)
		}
		defer unix.Close(fd)
		unix.SetKevent(&changes[i], fd, unix.EVFILT_VNODE, unix.EV_ADD|unix.EV_CLEAR)
		changes[i].Fflags = unix.NOTE_RENAME | unix.NOTE_DELETE | unix.NOTE_REVOKE
	}

	unix.SetKevent(&changes[len(dirs)], int(end.Fd()), unix.EVFILT_READ, unix.EV_ADD)
	if _, err := unix.Kevent(queue, changes, nil, nil); err != nil {
		return fmt.Errorf("watch for moves: %w", err)
	}
	if gone() {
		return nil
	}
	defer context.AfterFunc(ctx, func() { closed.Close() })()

	for {
		_, err := unix.Kevent(queue, nil, make([]unix.Kevent_t, 1), nil)
		if !errors.Is(err, unix.EINTR) {
			return errors.Join(err, context.Cause(ctx))
		}
	}
}
