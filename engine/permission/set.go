package permission

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"daycare/engine/sensitive"
)

// Default returns the permissions of an agent that was granted nothing: to read and write inside
// the workspace.
func Default(workspace string) Set {
	return Set{WorkingDir: filepath.Clean(workspace), ReadDirs: []string{}, WriteDirs: []string{}, Exec: []string{}}
}

// Allows reports whether the set contains a. Paths are compared as written: whoever opens them must
// make sure that no symbolic link leads out.
func (s Set) Allows(a Access) bool {
	switch a := a.(type) {
	case Read:
		return slices.ContainsFunc(s.ReadRoots(), func(root string) bool { return Beneath(root, a.Path) }) &&
			s.Withheld(a, sensitive.Here()) == ""
	case Write:
		return slices.ContainsFunc(s.WriteRoots(), func(root string) bool { return Beneath(root, a.Path) }) &&
			s.Withheld(a, sensitive.Here()) == ""
	case Web:
		return s.Web || a.Host != "" && slices.ContainsFunc(s.Hosts, func(host string) bool { return covers(host, a.Host) })
	case Lan:
		return slices.ContainsFunc(s.Lan, func(address string) bool { return strings.EqualFold(address, a.address()) })
	case Exec:
		return slices.ContainsFunc(s.Exec, func(prefix string) bool { return begins(prefix, a.Prefix) })
	case Mcp:
		return slices.ContainsFunc(s.MCP, func(entry string) bool { return coversMcp(entry, a) })
	case A2A:
		return slices.Contains(s.A2A, a.Host)
	case Plan:
		return s.Planned
	}

	return false // nil
}

// Withheld returns the path that a permission has to name so that the set reaches the path of a,
// although a folder of the set contains it: a secret, or a file that runs later, to write it, by its
// name or because a repository says so. "": the set reaches it.
func (s Set) Withheld(a Access, t sensitive.Table) (anchor string) {
	var path string
	named, in := slices.Concat([]string{s.WorkingDir}, s.WriteDirs), t.Secret
	switch a := a.(type) {
	case Read:
		path, named = a.Path, append(named, s.ReadDirs...)
	case Write:
		path, in = a.Path, func(folder, name string) bool { return t.Secret(folder, name) || t.Later(folder, name) }
	default:
		return ""
	}
	for _, root := range named {
		if !Beneath(root, path) {
			continue
		}
		between := sensitive.Anchor(filepath.Clean(root), path, in)
		if _, write := a.(Write); write && between == "" {
			between = sensitive.GitAnchor(filepath.Clean(root), path)
		}
		if between == "" {
			return ""
		}
		anchor = between
	}

	return anchor
}

// Named returns the paths that permissions of the set name, to read and to write, including those
// beneath another. They say what was meant, not what is opened: see ReadRoots.
func (s Set) Named() (read, write []string) {
	return slices.Clone(s.ReadDirs), slices.Concat([]string{s.WorkingDir}, s.WriteDirs)
}

// ReadRoots returns the folders and files that can be read: absolute, clean, none beneath another.
// What can be written can also be read.
func (s Set) ReadRoots() []string { return roots(s.WorkingDir, s.WriteDirs, s.ReadDirs) }

// WriteRoots returns the folders and files that can be written; none with a profile that changes
// nothing, and with a dry run only the copy.
func (s Set) WriteRoots() []string {
	switch {
	case !s.Changes():
		return nil
	case s.Profile == DryRun: // nothing but the copy, whatever else was granted
		return roots(s.WorkingDir)
	}

	return roots(s.WorkingDir, s.WriteDirs)
}

// roots drops every path that is beneath another. It is more than tidiness: a
// folder inside one that the agent can write could be replaced by a symbolic
// link, so it must be reached through the outer one and never opened by itself.
func roots(workingDir string, lists ...[]string) []string {
	all := []string{workingDir}
	for _, list := range lists {
		all = append(all, list...)
	}
	var kept []string
	for _, path := range all {
		if !filepath.IsAbs(path) {
			continue // a hand edit; a relative path would mean the daemon's own folder
		}
		path = filepath.Clean(path)
		if slices.ContainsFunc(kept, func(root string) bool { return Beneath(root, path) }) {
			continue
		}
		kept = slices.DeleteFunc(kept, func(root string) bool { return Beneath(path, root) })
		kept = append(kept, path)
	}

	return kept
}

// Beneath reports whether path is root or inside it. It is false if one of them is relative and the
// other absolute.
func Beneath(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && filepath.IsLocal(rel)
}

// covers reports whether the pattern of a grant covers a host.
func covers(pattern, host string) bool {
	pattern, host = strings.ToLower(pattern), strings.ToLower(host)
	if below, ok := strings.CutPrefix(pattern, "*."); ok {
		return host == pattern || strings.HasSuffix(host, "."+below)
	}

	return host == pattern
}

// joiners are the characters by which a shell makes one command of several, or
// fills one in: what follows them is not covered by the words before.
const joiners = ";&|<>$`\n\r(){}#!~*?[]\\\"'"

// Blanks are what a shell passes over around a command. Other spaces are letters for it.
const Blanks = " \t\n"

// begins reports whether command begins with the words of prefix. A command that
// holds more than plain words must be the prefix itself.
func begins(prefix, command string) bool {
	prefix, command = strings.Trim(prefix, Blanks), strings.Trim(command, Blanks)
	if prefix == "" {
		return false
	}
	if command == prefix {
		return true
	}
	rest, ok := strings.CutPrefix(command, prefix)
	return ok && (rest[0] == ' ' || rest[0] == '\t') && !strings.ContainsAny(command, joiners)
}

// Grant returns the set with the permission g.Tag and a record of the grant. A grant for one exact
// request (g.SHA256) is only recorded: it does not widen the set. s itself does not change.
func (s Set) Grant(g Grant) (Set, error) {
	a, err := Parse(g.Tag)
	if err != nil {
		return s, fmt.Errorf("grant %q: %w", g.Tag, err)
	}
	g.Tag = a.Tag()
	s.Grants = append(slices.DeleteFunc(slices.Clone(s.Grants), func(old Grant) bool {
		return old.Tag == g.Tag && old.SHA256 == g.SHA256
	}), g)
	if g.SHA256 != "" {
		return s, nil
	}
	switch a := a.(type) {
	case Read:
		s.ReadDirs = with(s.ReadDirs, a.Path)
	case Write:
		s.WriteDirs = with(s.WriteDirs, a.Path)
	case Web:
		if a.Host == "" {
			s.Web = true
		} else {
			s.Hosts = with(s.Hosts, a.Host)
		}
	case Lan:
		s.Lan = with(s.Lan, a.address())
	case Exec:
		s.Exec = with(s.Exec, a.Prefix)
	case Mcp:
		s.MCP = with(s.MCP, a.name())
	case A2A:
		s.A2A = with(s.A2A, a.Host)
	case Plan:
		s.Planned = true
	default:
		return s, fmt.Errorf("grant %q: unknown kind of right", g.Tag)
	}

	return s, nil
}

// Revoke returns the set without a permission, however the set got it. What a wider permission
// still covers stays allowed.
func (s Set) Revoke(tag string) (Set, error) {
	a, err := Parse(tag)
	if err != nil {
		return s, fmt.Errorf("revoke %q: %w", tag, err)
	}
	switch a := a.(type) {
	case Read:
		s.ReadDirs = without(s.ReadDirs, a.Path)
	case Write:
		s.WriteDirs = without(s.WriteDirs, a.Path)
	case Web:
		if a.Host == "" {
			s.Web = false
		} else {
			s.Hosts = without(s.Hosts, a.Host)
		}
	case Lan:
		s.Lan = slices.DeleteFunc(slices.Clone(s.Lan), func(address string) bool { return strings.EqualFold(address, a.address()) })
	case Exec:
		s.Exec = without(s.Exec, a.Prefix)
	case Mcp:
		s.MCP = without(s.MCP, a.name())
	case A2A:
		s.A2A = without(s.A2A, a.Host)
	default:
		return s, fmt.Errorf("revoke %q: unknown kind of right", tag)
	}
	s.Grants = slices.DeleteFunc(slices.Clone(s.Grants), func(old Grant) bool { return old.Tag == a.Tag() })
	return s, nil
}

// After returns the set after a decision that takes a right away, or gives another profile with its working folder, "" if that
// stays. It applies from the moment that it is accepted; other decisions when the agent has recorded them.
func (s Set) After(d Decision, tag, folder string) Set {
	switch d {
	case Profiled:
		s.Profile, s.WorkingDir = Profile(tag), cmp.Or(folder, s.WorkingDir)
	case Revoked:
		if less, err := s.Revoke(tag); err == nil {
			s = less
		}
	}

	return s
}

// Within returns the part of s that the parent also has: a child never gets more than its parent. A
// working folder out of the parent's reach is replaced by the parent's.
func (s Set) Within(parent Set) Set {
	drop := func(list []string, access func(string) Access) []string {
		return slices.DeleteFunc(slices.Clone(list), func(v string) bool { return !parent.Allows(access(v)) })
	}
	if !parent.Allows(Write{Path: s.WorkingDir}) {
		s.WorkingDir = parent.WorkingDir
	}
	if s.Profile == "" || !parent.Changes() || parent.Profile == DryRun {
		s.Profile = parent.Profile
	}
	s.ReadDirs = drop(s.ReadDirs, func(p string) Access { return Read{Path: p} })
	s.WriteDirs = drop(s.WriteDirs, func(p string) Access { return Write{Path: p} })
	s.Web = s.Web && parent.Web
	s.Hosts = drop(s.Hosts, func(h string) Access { return Web{Host: h} })
	s.Lan = slices.DeleteFunc(slices.Clone(s.Lan), func(address string) bool {
		a, err := parseLan(address)
		return err != nil || !parent.Allows(a)
	})
	s.Exec = drop(s.Exec, func(p string) Access { return Exec{Prefix: p} })
	s.MCP = slices.DeleteFunc(slices.Clone(s.MCP), func(entry string) bool {
		a, err := parseMcp(entry)
		return err != nil || !parent.Allows(a)
	})
	s.A2A = drop(s.A2A, func(h string) Access { return A2A{Host: h} })
	s.Grants = slices.DeleteFunc(slices.Clone(s.Grants), func(g Grant) bool {
		a, err := Parse(g.Tag)
		return err != nil || !parent.Allows(a)
	})
	return s
}

func with(list []string, v string) []string {
	if slices.Contains(list, v) {
		return list
	}
	return append(slices.Clone(list), v)
}

func without(list []string, v string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(old string) bool { return old == v })
}

// Rights lists the permissions in a set, one by one.
func (s Set) Rights() []Access {
	list := []Access{Write{Path: s.WorkingDir}}
	for _, dir := range s.WriteDirs {
		list = append(list, Write{Path: dir})
	}
	for _, dir := range s.ReadDirs {
		list = append(list, Read{Path: dir})
	}
	if s.Web {
		list = append(list, Web{})
	}
	for _, host := range s.Hosts {
		list = append(list, Web{Host: host})
	}
	for _, address := range s.Lan {
		if a, err := Parse("@lan:" + address); err == nil {
			list = append(list, a)
		}
	}
	for _, prefix := range s.Exec {
		list = append(list, Exec{Prefix: prefix})
	}
	for _, entry := range s.MCP {
		if a, err := parseMcp(entry); err == nil {
			list = append(list, a)
		}
	}
	for _, host := range s.A2A {
		list = append(list, A2A{Host: host})
	}

	return list
}
