package sandbox

import (
	"fmt"
	"strings"
)

const sandboxExec = "/usr/bin/sandbox-exec"

// seatbeltProfile is the view in the language of macOS' sandbox. The last rule
// that fits counts.
func seatbeltProfile(v View) string {
	var b strings.Builder
	b.WriteString("(version 1)\n(deny default)\n")
	b.WriteString("(allow process-exec process-fork signal (target same-sandbox))\n")
	b.WriteString("(allow sysctl-read mach-lookup file-read-metadata)\n(deny network*)\n(deny file-link)\n")
	b.WriteString("(allow file-read*" + subpaths("/usr", "/bin", "/sbin", "/System", "/Library", "/private/etc", "/opt", "/dev") + ")\n")
	b.WriteString(`(allow file-write* (literal "/dev/null") ` +
		`(literal "/dev/zero") (literal "/dev/tty") (literal "/dev/dtracehelper"))` + "\n")
	b.WriteString("(allow file-read*" + subpaths(append(v.Read, v.Home)...) + ")\n")
	b.WriteString("(allow file-read* file-write*" + subpaths(append(v.Write, v.Home)...) + ")\n")
	if len(v.Locked) > 0 {
		b.WriteString("(deny file-write*" + subpaths(v.Locked...) + ")\n")
	}

	b.WriteString("(deny file-read* file-write*" + subpaths(append(v.concealed(), "/private/etc/master.passwd")...) + ")\n")
	if len(v.Shown) > 0 {
		b.WriteString("(allow file-read*" + subpaths(v.Shown...) + ")\n")
	}
	if len(v.Own) > 0 {
		b.WriteString("(allow file-read* file-write*" + subpaths(v.Own...) + ")\n")
	}

	return b.String()
}

func subpaths(paths ...string) string {
	var b strings.Builder
	for _, p := range paths {
		fmt.Fprintf(&b, ` (subpath %s)`, scheme(p))
	}

	return b.String()
}

// scheme quotes a string for the profile.
func scheme(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
