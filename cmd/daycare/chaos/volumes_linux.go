package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// fileSystems are those that a cut is played on, with how they are made.
var fileSystems = []struct {
	name string
	size int64
	mkfs []string
}{
	{"ext4", 96 << 20, []string{"mkfs.ext4", "-q", "-F"}},
	{"xfs", 320 << 20, []string{"mkfs.xfs", "-q", "-f"}},
}

const cutsPerVolume = 10 // of one workspace

// volumes cuts real file systems off in the middle of everything, and fills one.
func (h *harness) volumes(ctx context.Context) error {
	n := h.powerCuts()
	if n == 0 {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, fs := range fileSystems {
		if !h.plays("power cut of " + fs.name) {
			continue
		}
		group.Go(func() error {
			v, err := h.mountImage(fs.name, fs.size, fs.mkfs)
			if err != nil {
				h.report.skip("power cuts of %s: %v", fs.name, err)
				return nil
			}

			return errors.Join(h.cutVolume(ctx, v, n), v.unmount())
		})
	}

	if h.plays("full disk") {
		group.Go(func() error { return h.fullDisk(ctx) })
	}

	return group.Wait()
}

// A volume is a file system in a file.
type volume struct{ name, image, at string }

func (h *harness) mountImage(name string, size int64, mkfs []string) (*volume, error) {
	if os.Getuid() != 0 {
		return nil, errors.New("mounting needs root")
	}
	v := &volume{name: name, image: filepath.Join(h.dir, name+".img"), at: filepath.Join(h.dir, name)}
	f, err := os.Create(v.image)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Truncate(size), f.Close(), os.MkdirAll(v.at, 0o700)); err != nil {
		return nil, err
	}
	if err := command(append(mkfs, v.image)...); err != nil {
		return nil, err
	}

	return v, v.mount()
}

func command(args ...string) error {
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}

	return nil
}

func (v *volume) mount() error {
	if err := v.released(); err != nil {
		return err
	}
	return command("mount", "-o", "loop", v.image, v.at)
}

// released waits until nothing holds the file system that was unmounted. A sandbox that
// began meanwhile has the mount too, in a namespace of its own. As long as it has,
// mounting the image gives the file system that was shut down, and not what its journal
// makes of it.
func (v *volume) released() error {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		held, err := v.held()
		if err != nil || !held {
			return err
		}
	}

	return fmt.Errorf("%s is still in use: its mount is kept by %s", v.image, strings.Join(v.holders(), ", "))
}

// holders are the processes in whose mounts the volume is.
func (v *volume) holders() (who []string) {
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}

	for _, p := range processes {
		// What is gone meanwhile, or not to be read, has nothing to say.
		if mounts, err := os.ReadFile(filepath.Join(p, "mountinfo")); err == nil && bytes.Contains(mounts, []byte(v.at)) {
			args, _ := os.ReadFile(filepath.Join(p, "cmdline"))
			who = append(who, fmt.Sprintf("process %s (%s)", filepath.Base(p),
				bytes.ReplaceAll(bytes.TrimRight(args, "\x00"), []byte{0}, []byte(" "))))
		}
	}

	if len(who) == 0 {
		return []string{"no process that can be seen"}
	}

	return who
}

// held reports whether a loop device has the image.
func (v *volume) held() (bool, error) {
	image, err := filepath.EvalSymlinks(v.image)
	if err != nil {
		return false, err
	}
	devices, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return false, err
	}

	return slices.ContainsFunc(devices, func(path string) bool {
		of, err := os.ReadFile(path) // one that is gone by now has nothing
		return err == nil && strings.TrimSpace(string(of)) == image
	}), nil
}

// unmount waits for what the tools of a killed daemon still hold.
func (v *volume) unmount() (err error) {
	for range 200 {
		if err = unix.Unmount(v.at, 0); !errors.Is(err, unix.EBUSY) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}

	return err
}

// unmountBelow takes down what a killed harness mounted in dir, also where something
// still holds it.
func unmountBelow(dir string) error {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return err
	}

	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	var failed error
	for line := range strings.Lines(string(mounts)) {
		// The fifth field is where it is mounted; names of harnesses hold nothing that is escaped.
		if fields := strings.Fields(line); len(fields) > 4 && filepath.Dir(fields[4]) == dir {
			failed = errors.Join(failed, unix.Unmount(fields[4], unix.MNT_DETACH))
		}
	}

	return failed
}

const (
	shutdownCall  = 0x8004587d // FS_IOC_SHUTDOWN
	withoutTheLog = 2          // what is in memory of the journal is lost too
)

// cut takes the file system away from under the daemon, as a power cut does, and
// brings back what its journal makes of it.
//
// A power cut takes the process in the same instant. A file system that is shut down
// under a process that runs on may say of a sync that waited for its journal that it
// was done (ext4 does), and the process would tell users so; hence the process stands
// still before.
func (v *volume) cut(d *daemon) error {
	f, err := os.Open(v.at)
	if err != nil {
		return err
	}
	d.condemn()
	if err := d.freeze(); err != nil {
		f.Close()
		return err
	}

	err = unix.IoctlSetPointerInt(int(f.Fd()), shutdownCall, withoutTheLog)
	f.Close()
	d.kill()

	return errors.Join(err, v.unmount(), v.mount())
}

// freeze stops a daemon. A thread within a call into the kernel ends it, but does not
// come back from it.
func (d *daemon) freeze() error {
	pid := d.cmd.Process.Pid
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		return err
	}

	for d.alive() {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(threads, running) {
			break
		}
		time.Sleep(100 * time.Microsecond)
	}

	return nil
}

// running reports whether a thread may be executing code of its program.
func running(stat string) bool {
	data, err := os.ReadFile(stat)
	if err != nil {
		return false // it is gone
	}
	_, fields, _ := strings.Cut(string(data), ") ")

	return strings.HasPrefix(fields, "R") || strings.HasPrefix(fields, "S")
}

// cutVolume cuts n times, in workspaces of ten cuts each.
func (h *harness) cutVolume(ctx context.Context, v *volume, n int) error {
	for done := 0; done < n && ctx.Err() == nil && !h.report.enough(); done += cutsPerVolume {
		deaths := min(n-done, cutsPerVolume)
		workspace := filepath.Join(v.at, fmt.Sprintf("w%d", done))
		c := Case{Way: "power cut of " + v.name, Scenario: load(4, deaths), Root: workspace, Lost: v.cut, Patience: 4 * time.Minute}
		c.Random = func(life int) Death {
			if life >= deaths {
				return Death{}
			}
			return Death{After: anyMoment(), Busy: true}
		}
		r, err := h.play(ctx, c)
		if err != nil {
			return err
		}
		if len(r.Violations) > 0 {
			if err := keep(workspace, filepath.Join(r.Dir, "workspace")); err != nil {
				r.violate("the workspace could not be kept: %v", err)
			}
		}

		h.take(r)
		if err := os.RemoveAll(workspace); err != nil {
			return err
		}
	}

	return ctx.Err()
}

// keep copies a workspace off a file system that is about to go. Sockets stay behind.
func keep(workspace, to string) error {
	return errors.Join(tidy(workspace), os.CopyFS(to, os.DirFS(workspace)))
}

// fullDisk fills a small disk to the brim: what comes then is refused, and accepted
// when there is room again.
func (h *harness) fullDisk(ctx context.Context) error {
	v := &volume{at: filepath.Join(h.dir, "small")}
	err := os.MkdirAll(v.at, 0o700)
	if err == nil {
		err = unix.Mount("daycare-chaos", v.at, "tmpfs", 0, "size=24m")
	}
	if err != nil {
		h.report.skip("a full disk: %v", err)
		return nil
	}

	s := &Scenario{Name: "full-disk", Steps: []step{say("a", "m1", "hello"), answered(1), say("a", "m2", "act"), answered(2),
		fill, refused("m3", "hello "+strings.Repeat("lorem ipsum ", 1000)), makeRoom, say("a", "m3", "hello"), say("a", "m4", "act")}}
	r, err := h.play(ctx, Case{Way: "full disk", Scenario: s, Root: filepath.Join(v.at, "w")})
	if err == nil {
		h.take(r)
	}

	return errors.Join(err, v.unmount())
}

func filler(u *user) string { return filepath.Join(filepath.Dir(u.root), "filler") }

// fill writes until nothing fits any more.
func fill(_ context.Context, u *user) error {
	f, err := os.Create(filler(u))
	if err != nil {
		return err
	}
	defer f.Close()

	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); errors.Is(err, unix.ENOSPC) {
			size /= 2
		} else if err != nil {
			return err
		}
	}

	return nil
}

func makeRoom(_ context.Context, u *user) error { return os.Remove(filler(u)) }

// refused offers a message that cannot be accepted: it is longer than what is left
// of the last page of the inbox.
func refused(key, text string) step {
	return func(ctx context.Context, u *user) error {
		for range 20 {
			if _, ok := u.post(ctx, "a", key, []byte(`{"text":"`+key+" "+text+`"}`)); ok {
				return fmt.Errorf("%s was accepted although the disk is full", key)
			}
		}

		return nil
	}
}
