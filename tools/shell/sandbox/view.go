package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"daycare/engine/beneath"
)

// systemDirs are what every program needs to run. They are read only.
var systemDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix/store",
	"/run/current-system"}

// secrets are beneath them and out of reach, also of a daemon that runs as root.
var secrets = []string{"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d",
	"/etc/ssl/private", "/etc/letsencrypt", "/etc/wireguard", "/etc/NetworkManager/system-connections", "/etc/krb5.keytab",
	"/etc/ssh/ssh_host_rsa_key", "/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ed25519_key", "/etc/ssh/ssh_host_dsa_key"}

// tmp is the folder for temporary files where /tmp cannot be a private one.
func (v View) tmp() string { return filepath.Join(v.Home, "tmp") }

// prepare makes what the view needs and brings its paths into the form that the
// rest of the package relies on: real, of what exists.
func (v View) prepare() (View, error) {
	if err := os.MkdirAll(v.tmp(), 0o700); err != nil {
		return v, fmt.Errorf("make home of commands: %w", err)
	}
	for _, list := range []*[]string{&v.Read, &v.Write, &v.Shown, &v.Own} {
		var kept []string
		for _, path := range *list {
			if _, ok := v.Pinned[path]; ok {
				kept = append(kept, path) // a link that is in its place by now is not followed
			} else if real, err := filepath.EvalSymlinks(path); err == nil {
				kept = append(kept, real)
			}
		}
		*list = kept
	}

	v.Hidden, v.Found = append(slices.Clone(v.Hidden), secrets...), slices.Clone(v.Found)
	for _, list := range [][]string{v.Hidden, v.Found} {
		for i, path := range list {
			list[i] = beneath.Real(path)
		}
	}

	// What is shown in a folder has to be mounted after what hides the folder.
	v.Found = slices.DeleteFunc(v.Found, func(path string) bool {
		opened := slices.ContainsFunc(slices.Concat(v.Shown, v.Own), func(shown string) bool { return within(path, shown) })
		if opened {
			v.Hidden = append(v.Hidden, path)
		}
		return opened
	})

	covered := func(path string) bool {
		return slices.ContainsFunc(v.concealed(), func(h string) bool { return within(h, path) })
	}
	v.Read, v.Write = slices.DeleteFunc(v.Read, covered), slices.DeleteFunc(v.Write, covered)
	if v.homeGranted() {
		return v, nil
	}

	var err error
	if v.Home, err = filepath.EvalSymlinks(v.Home); err != nil {
		return v, fmt.Errorf("find home of commands: %w", err)
	}

	return v, nil
}

// concealed are all paths that are out of reach.
func (v View) concealed() []string { return slices.Concat(v.Hidden, v.Found) }

// homeGranted reports that the home is in a granted folder. It is then not to be
// granted again by its own path, which a command could make lead elsewhere.
func (v View) homeGranted() bool {
	for _, root := range v.Write {
		if within(root, filepath.Clean(v.Home)) {
			return true
		}
	}

	return false
}

// within reports whether path is root or is in it.
func within(root, path string) bool {
	return root == path || root == "/" || strings.HasPrefix(path, root+"/")
}

// without is the parts of root that lie neither in nor above one of the paths: root
// itself if none of them is beneath it, else its entries, and theirs. opened are
// the folders that had to be taken apart. It reads folders, so what is made in an
// opened folder later is in no part.
func without(root string, paths []string) (parts, opened []string, err error) {
	inside := false
	for _, p := range paths {
		if within(p, root) {
			return nil, nil, nil
		}
		inside = inside || within(root, p)
	}

	if !inside {
		return []string{root}, nil, nil
	}
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}

	opened = []string{root}
	for _, e := range entries {
		path := filepath.Join(root, e.Name())
		if e.Type()&fs.ModeSymlink != 0 {
			continue // what it leads to is granted by its own path or not at all
		}
		p, o, err := without(path, paths)
		if err != nil {
			return nil, nil, err
		}
		parts, opened = append(parts, p...), append(opened, o...)
	}

	return parts, opened, nil
}

// check reports a pinned path that is something else. It is called where what was granted
// cannot change any more: inside the view.
func (v View) check() error {
	for path, id := range v.Pinned {
		if !slices.ContainsFunc(slices.Concat(v.Read, v.Write), func(root string) bool { return root == path }) {
			continue
		}
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // hidden, or gone: nothing was granted
		}
		if err != nil {
			return err
		}
		if beneath.IDOf(info) != id {
			return fmt.Errorf("%s was replaced while the command was started", path)
		}
	}

	return nil
}

// around returns the innermost pinned path around a path; "" if there is none.
func (v View) around(path string) (root string) {
	for pinned := range v.Pinned {
		if within(pinned, path) && len(pinned) > len(root) {
			root = pinned
		}
	}

	return root
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
