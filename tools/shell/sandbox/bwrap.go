package sandbox

import "strconv"

// bwrapArgs is the command line of bubblewrap up to the command.
func (r *Runner) bwrapArgs(p *plan, dir string) []string {
	args := []string{r.bwrap, "--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
		"--die-with-parent", "--new-session",
		// For the helper, which holds paths in place and then gives them up.
		"--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SETPCAP"}
	for _, m := range p.Mounts {
		args = append(args, m.bwrap()...)
	}

	for _, path := range p.ReadOnly {
		args = append(args, "--remount-ro", path)
	}

	return append(args, "--chdir", dir)
}

func (m mount) bwrap() []string {
	switch m.Kind {
	case procFS, devFS:
		return []string{"--" + string(m.Kind), m.At}
	case tmpFS:
		return []string{"--size", strconv.Itoa(tmpBytes), "--tmpfs", m.At}
	}

	option := "--" + string(m.Kind)
	if m.Gone {
		option += "-try"
	}

	return []string{option, m.From, m.At}
}
