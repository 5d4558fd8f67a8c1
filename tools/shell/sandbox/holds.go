package sandbox

// A Hold says whether a runner keeps a command from something on this machine, and by
// what, for users.
type Hold struct {
	What string `json:"what"`
	Held bool   `json:"held"`
	How  string `json:"how"`
}

// Holds is the table of what a runner promises here. What package probe tries holds
// wherever a level was chosen; the rest depends on what the system lets daycare do.
func (r *Runner) Holds() []Hold {
	if r.Level == None {
		return []Hold{{"everything", false, "no sandbox: a command can do what you can"}}
	}
	view := func(what, how, otherwise string) Hold {
		if r.HasView() {
			return Hold{what, true, how}
		}
		return Hold{what, false, otherwise}
	}
	table := []Hold{
		{"files outside the granted folders", true, "they do not exist for a command, or the kernel refuses them"},
		{"your keys, and every .daycare", true, "hidden, whatever folder around them is granted"},
		view("files that run later", "read only, or put aside when the command has ended; commits work",
			"nothing can be created in a folder with one of them: no commits, and no new files next to .daycare"),
		{"connections", true, "no network"},
		view("some hosts only", "a proxy of the command's own, for the hosts that its call names",
			"not to be had: allowedDomains is refused"),
		view("other processes", "a command sees its own", "signals and tracing are refused, but their command lines can be read"),
		view("shared memory and queues", "namespaces of its own", "refused, also among the command's own processes"),
		{"your terminal", true, "a session of its own; input into terminals is refused"},
		{"setuid and setgid files", true, "refused"},
	}

	return append(table, bounded()...)
}
