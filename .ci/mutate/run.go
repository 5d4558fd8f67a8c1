package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// hook is the file that each package gets for its mutants to call.
//
//go:embed hook.go.txt
var hook string

// A binary is the test binary of a package with all its mutants in it, all switched off.
type binary struct {
	dir     string // of the package: the tests run there
	tmp     string
	path    string
	mutants []mutant
	tests   []test
}

// A test is one function of the test binary.
type test struct {
	name    string
	took    time.Duration
	reaches map[int]bool // the mutants whose place it comes to
}

func (b *binary) remove() { os.RemoveAll(b.tmp) }

// reaching are the tests that come to the place of a mutant, the quick ones first.
func (b *binary) reaching(i int) []test {
	var list []test
	for _, t := range b.tests {
		if t.reaches[i] {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b test) int { return cmp.Compare(a.took, b.took) })

	return list
}

// build compiles the tests of a package with its mutants.
func (o options) build(pkg string) (*binary, error) {
	tmp, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return nil, err
	}
	b := &binary{tmp: tmp, path: filepath.Join(tmp, "package.test")}
	if err := errors.Join(os.Chmod(tmp, 0o755), b.compile(pkg)); err != nil {
		b.remove()
		return nil, err
	}

	return b, nil
}

func (b *binary) compile(pkg string) error {
	p, err := load(pkg)
	if err != nil {
		return err
	}
	b.dir = p.dir
	replace := map[string]string{filepath.Join(p.dir, "mutate_hook.go"): filepath.Join(b.tmp, "mutate_hook.go")}
	source := "package " + p.types.Name() + "\n\n" + hook
	errs := []error{os.WriteFile(filepath.Join(b.tmp, "mutate_hook.go"), []byte(source), 0o600)}
	for _, f := range p.files {
		changed := filepath.Join(b.tmp, filepath.Base(f.path))
		replace[f.path] = changed
		errs = append(errs, os.WriteFile(changed, p.mutate(f, len(b.mutants)), 0o600))
		b.mutants = append(b.mutants, f.made...)
	}

	data, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	overlay := filepath.Join(b.tmp, "overlay.json")
	if err := errors.Join(append(errs, err, os.WriteFile(overlay, data, 0o600))...); err != nil {
		return err
	}

	out, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", b.path, pkg).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s with its mutants does not compile: %w\n%s", pkg, err, out)
	}

	return nil
}

// reach runs each test alone and without a change, to learn how long it takes and which
// mutants it reaches. One that fails twice is an error.
func (o options) reach(b *binary) error {
	list := exec.Command(b.path, "-test.list", ".")
	list.Dir = b.dir
	out, err := list.Output()
	if err != nil {
		return err
	}

	for name := range strings.FieldsSeq(string(out)) {
		if !strings.HasPrefix(name, "Benchmark") {
			b.tests = append(b.tests, test{name: name, reaches: map[int]bool{}})
		}
	}

	errs := make([]error, len(b.tests))
	o.parallel(len(b.tests), func(n int) {
		t := &b.tests[n]
		file := filepath.Join(b.tmp, "reached-"+t.name)
		if errs[n] = shared(file); errs[n] != nil {
			return
		}
		for range 2 {
			begin := time.Now()
			out, err := o.run(b, 10*time.Minute, []string{"MUTATE_REACHED=" + file}, t.name)
			if t.took = time.Since(begin); err == nil {
				errs[n] = nil
				break
			}
			errs[n] = fmt.Errorf("%s fails without any change: %w\n%s", t.name, err, out)
		}

		data, err := os.ReadFile(file)
		errs[n] = errors.Join(errs[n], err)
		for line := range strings.FieldsSeq(string(data)) {
			if i, err := strconv.Atoi(line); err == nil {
				t.reaches[i] = true
			}
		}
	})

	return errors.Join(errs...)
}

// shared makes a file that a test can write that runs itself as another user.
func shared(path string) error {
	return errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o666))
}

var failed = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// kill tries a mutant and returns what killed it: "" if the tests pass.
func (o options) kill(b *binary, i int) string {
	on := []string{"MUTATE_ON=" + strconv.Itoa(i)}
	tests := b.reaching(i)
	for len(tests) > 0 {
		// Tests of about a second together, or one that takes longer, a process.
		n, together := 1, tests[0].took
		for n < len(tests) && together+tests[n].took < 2*time.Second {
			together += tests[n].took
			n++
		}

		batch := tests[:n]
		var names []string
		for _, t := range batch {
			names = append(names, t.name)
		}

		tests = tests[n:]

		limit := o.timeout
		if limit == 0 {
			limit = 10*time.Second + 3*together
		}
		out, err := o.run(b, limit, on, names...)
		if err == nil {
			continue
		}

		m := failed.FindSubmatch(out)
		if m == nil {
			return "a panic, a time-out or an exit" // the process ended
		}
		name := string(m[1])
		if _, err := o.run(b, limit, on, name); err != nil {
			return name
		}

		// It was the machine, or chance. The tests behind it have not been run.
		for _, t := range batch {
			if t.name != name {
				tests = append(tests, t)
			}
		}
	}

	return ""
}

// run runs some tests of a binary, with variables added to the environment.
func (o options) run(b *binary, limit time.Duration, env []string, tests ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit+10*time.Second)
	defer cancel()
	pattern := "^(" + strings.Join(tests, "|") + ")$"
	cmd := exec.CommandContext(ctx, b.path, "-test.run", pattern, "-test.failfast", "-test.timeout", limit.String(),
		"-test.short="+strconv.FormatBool(o.short), "-test.paniconexit0")
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), env...)
	cmd.WaitDelay = 5 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if cmd.Process != nil {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what tests that were cut short have left running
	}

	return out.Bytes(), err
}
