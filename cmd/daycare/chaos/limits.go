package chaos

// A limit is something that a process has little of; "": it has as much as others.
type limit string

// Limits.
const (
	fewDescriptors limit = "few descriptors"
	noInotify      limit = "full inotify table"
)

// command is how a program is started under the limit.
func (l limit) command(args []string) []string {
	switch l {
	case fewDescriptors:
		return append([]string{"/bin/sh", "-c", `ulimit -n 64 && exec "$0" "$@"`}, args...)
	case noInotify: // in a namespace of its own, whose table has no room
		return append([]string{"unshare", "--user", "--map-root-user", "/bin/sh", "-c",
			`echo 0 >/proc/sys/user/max_inotify_instances && exec "$0" "$@"`}, args...)
	}

	return args
}
