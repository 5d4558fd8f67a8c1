package watch

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Moved waits until one of the folders is moved or removed (nil) or ctx ends (its
// error). What happens in the folders does not wake it. gone is called once the watch
// is set: true ends the wait, for what happened before.
func Moved(ctx context.Context, dirs []string, gone func() bool) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return fmt.Errorf("watch for moves: %w", err)
	}
	queue := os.NewFile(uintptr(fd), "inotify")
	defer queue.Close()

	for _, dir := range dirs {
		if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_MOVE_SELF|unix.IN_DELETE_SELF|unix.IN_ONLYDIR); err != nil {
			return fmt.Errorf("watch %s for moves: %w", dir, err)
		}
	}

	if gone() {
		return nil
	}
	defer context.AfterFunc(ctx, func() { _ = queue.SetReadDeadline(time.Unix(1, 0)) })()
	if _, err := queue.Read(make([]byte, unix.SizeofInotifyEvent+unix.NAME_MAX+1)); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}

	return nil
}
