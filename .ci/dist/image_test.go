package dist

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// A step is one instruction of the Dockerfile.
type step struct{ word, rest string }

// stages are the steps of the Dockerfile, by its FROM lines.
func stages(t *testing.T) (all [][]step) {
	t.Helper()
	text := strings.ReplaceAll(string(read(t, "../../Dockerfile")), "\\\n", " ")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		if word == "FROM" {
			all = append(all, nil)
		}
		if len(all) == 0 {
			t.Fatalf("the Dockerfile begins with %s", line)
		}
		all[len(all)-1] = append(all[len(all)-1], step{word, rest})
	}

	return all
}

// of returns what a stage says for a word, the last if it does so several times.
func of(stage []step, word string) string {
	for _, s := range slices.Backward(stage) {
		if s.word == word {
			return s.rest
		}
	}
	return ""
}

func TestDockerfile(t *testing.T) {
	all := stages(t)
	if len(all) != 2 {
		t.Fatalf("%d stages, not one that builds and one that runs", len(all))
	}
	needed := regexp.MustCompile(`(?m)^go (\S+)$`).FindStringSubmatch(string(read(t, "../../go.mod")))[1]
	build, run := all[0], all[1]
	if from := of(build, "FROM"); !strings.HasPrefix(from, "golang:"+needed+"-") || !strings.HasSuffix(from, " AS build") {
		t.Errorf("it builds with %s, and go.mod says %s", from, needed)
	}

	for _, stage := range all {
		if from := of(stage, "FROM"); !strings.Contains(from, ":") || strings.Contains(from, ":latest") {
			t.Errorf("FROM %s names no version", from)
		}
		for _, s := range stage {
			switch s.word {
			case "FROM", "WORKDIR", "COPY", "RUN", "USER", "VOLUME", "HEALTHCHECK", "ENTRYPOINT", "CMD":
			default:
				t.Errorf("%s is not one of the instructions that this image needs", s.word)
			}
		}
	}

	if user := of(run, "USER"); user == "" || user == "root" || user == "0" {
		t.Errorf("it runs as %q", user)
	}
	if of(run, "WORKDIR") != of(run, "VOLUME") || !strings.HasPrefix(of(run, "VOLUME"), "/") {
		t.Errorf("it works in %q, and the volume is %q", of(run, "WORKDIR"), of(run, "VOLUME"))
	}
	if of(run, "ENTRYPOINT") != `["daycare"]` || of(run, "CMD") != `["start"]` || of(run, "HEALTHCHECK") == "" {
		t.Errorf("it runs %s %s, healthy if %s", of(run, "ENTRYPOINT"), of(run, "CMD"), of(run, "HEALTHCHECK"))
	}
}

// TestImageSteps does what the Dockerfile says, on a copy of this machine's file system in place
// of the base image: it builds, makes the user and the volume, starts as that user in the
// volume, is healthy, and answers with the offline model. Steps that need a network are skipped.
func TestImageSteps(t *testing.T) {
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("it needs root on Linux for mounts and chroot")
	}
	all := stages(t)
	program := filepath.Join(t.TempDir(), "daycare")
	for _, s := range all[0] {
		if s.word == "RUN" && strings.Contains(s.rest, "go build") {
			build := exec.Command("sh", "-c", strings.ReplaceAll(s.rest, "/out/daycare", program))
			build.Dir = "../.."
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("RUN %s: %v\n%s", s.rest, err, out)
			}
		}
	}

	script := []string{"set -e", "cd " + t.TempDir(), "mount -t tmpfs tmpfs .", "mkdir upper work root",
		"mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work root",
		"mount -t proc proc root/proc", "mount -t tmpfs tmpfs root/tmp", "echo MOUNTED"}
	for _, s := range all[1] {
		switch {
		case s.word == "RUN" && strings.HasPrefix(s.rest, "apt-get"):
			t.Logf("skipped, it needs a network: RUN %s", s.rest)
		case s.word == "RUN":
			script = append(script, "chroot root sh -c '"+s.rest+"'")
		case s.word == "COPY":
			words := strings.Fields(s.rest)
			script = append(script, "cp "+program+" root"+words[len(words)-1])
		}
	}

	user, dir := of(all[1], "USER"), of(all[1], "WORKDIR")
	as := func(command string) string {
		return "chroot --userspec=" + user + ":" + user + " root env -i HOME=/home/" + user +
			" PATH=/usr/local/bin:/usr/bin:/bin sh -c 'cd " + dir + " && " + command + "'"
	}
	_, health, _ := strings.Cut(of(all[1], "HEALTHCHECK"), "CMD ")
	health = strings.ReplaceAll(health, "'", `'\''`)
	script = append(script, as("exec daycare start")+" >log 2>&1 &",
		"for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do sleep 1; "+as(health)+" && break; done",
		as(health), "echo HEALTHY",
		as("id -un; daycare chat hello; daycare send 0/ hello --wait; ls -ld .daycare; daycare stop"),
		"! "+as(health), "echo ENDED", "cat log")

	out, err := exec.Command("unshare", "--mount", "--pid", "--net", "--fork", "--kill-child",
		"sh", "-c", strings.Join(script, "\n")).CombinedOutput()
	said := string(out)
	if !strings.Contains(said, "MOUNTED") {
		t.Skipf("the file system of this machine cannot be mounted again: %v\n%s", err, said)
	}

	t.Logf("%s", said)
	if err != nil || strings.Count(said, "offline model") < 2 || !strings.Contains(said, "ENDED") {
		t.Errorf("the steps end with %v", err)
	}
	if !regexp.MustCompile(`(?m)^`+user+`$`).MatchString(said) || !strings.Contains(said, "drwx------") {
		t.Errorf("it does not run as %s, or the workspace is open to others", user)
	}
}
