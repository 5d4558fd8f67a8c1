package skills

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"daycare/engine/attacktest"
	"daycare/engine/finding"
	"daycare/engine/unseen"
	"daycare/engine/workspace"
	"daycare/tools"
)

const (
	secret = "TOP-SECRET"
	stolen = "---\nname: tea\ndescription: " + secret + "\n---\n" + secret
)

// What an agent puts in the place of a skill, its SKILL.md or the folder of skills is neither
// listed nor read, is reported once, and costs no more than a look.
func TestHostileSkills(t *testing.T) {
	for name, plant := range map[string]func(ws, outside string) error{
		"folder of skills is a link": func(ws, outside string) error { return os.Symlink(outside, ws+"/.agents") },
		"skills is a link": func(ws, outside string) error {
			return errors.Join(os.Mkdir(ws+"/.agents", 0o755), os.Symlink(outside+"/skills", ws+"/.agents/skills"))
		},
		"skill is a link": func(ws, outside string) error {
			return errors.Join(skillsFolder(ws), os.Symlink(outside+"/skills/tea", ws+"/.agents/skills/tea"))
		},
		"skill is a link inside": func(ws, outside string) error {
			return errors.Join(skillsFolder(ws), os.Rename(outside+"/skills/tea", ws+"/t"), os.Symlink("../../t", ws+"/.agents/skills/tea"))
		},
		"SKILL.md is a link": func(ws, outside string) error {
			return errors.Join(teaFolder(ws), os.Symlink(outside+"/skills/tea/SKILL.md", ws+"/.agents/skills/tea/SKILL.md"))
		},
		"SKILL.md is a hard link": func(ws, outside string) error {
			return errors.Join(teaFolder(ws), os.Link(outside+"/skills/tea/SKILL.md", ws+"/.agents/skills/tea/SKILL.md"))
		},
		"SKILL.md is a pipe": func(ws, outside string) error {
			return errors.Join(teaFolder(ws), syscall.Mkfifo(ws+"/.agents/skills/tea/SKILL.md", 0o600))
		},
		"SKILL.md is a folder": func(ws, outside string) error {
			return errors.Join(teaFolder(ws), os.Mkdir(ws+"/.agents/skills/tea/SKILL.md", 0o755))
		},
		"SKILL.md is a device": func(ws, outside string) error {
			return errors.Join(teaFolder(ws), os.Symlink("/dev/zero", ws+"/.agents/skills/tea/SKILL.md"))
		},
		"SKILL.md is a socket": func(ws, outside string) error {
			l, err := net.Listen("unix", filepath.Join(ws, "s"))
			if err == nil {
				l.(*net.UnixListener).SetUnlinkOnClose(false)
				l.Close()
			}
			return errors.Join(err, teaFolder(ws), os.Rename(ws+"/s", ws+"/.agents/skills/tea/SKILL.md"))
		},
		"SKILL.md is large": func(ws, outside string) error {
			return errors.Join(teaFolder(ws),
				os.WriteFile(ws+"/.agents/skills/tea/SKILL.md", []byte(strings.Repeat("x", maxFile+1)), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			ws, outside := t.TempDir(), t.TempDir()
			put(t, outside+"/skills/tea/SKILL.md", stolen)
			if err := plant(ws, outside); err != nil {
				t.Fatal(err)
			}
			told := 0
			set := NewSet(func() []Folder { return []Folder{{Root: ws, Path: ".agents/skills"}} }, nil,
				func(_ string, found []finding.Finding) { told += len(found) })
			for range 2 {
				if list := set.List(); named(list, "tea") >= 0 {
					t.Errorf("it is listed: %+v", list)
				}
			}
			if res := call(t, New(set.List)[0], `{"name":"tea"}`); res.Status != tools.Failed || strings.Contains(res.Text, secret) {
				t.Errorf("%s: %s", res.Status, res.Text)
			}
			if told != 1 {
				t.Errorf("%d findings, want 1", told)
			}
			attacktest.Held(t, attacktest.Row{Class: "prompts, skills, memory", How: "opened as a plain file, or not at all", Name: name})
		})
	}
	attacktest.AsUser(t)
}

func skillsFolder(ws string) error { return os.MkdirAll(ws+"/.agents/skills", 0o755) }
func teaFolder(ws string) error    { return os.MkdirAll(ws+"/.agents/skills/tea", 0o755) }

// In a folder where no agent writes its owner may have links, but not to where agents write.
func TestLinksOfTheOwner(t *testing.T) {
	own, elsewhere, shared := t.TempDir(), t.TempDir(), t.TempDir()
	good := "---\nname: tea\ndescription: d\n---\nBoil."
	put(t, elsewhere+"/tea/SKILL.md", good)
	put(t, elsewhere+"/tea/more.txt", "more")
	put(t, shared+"/milk/SKILL.md", strings.ReplaceAll(good, "tea", "milk"))
	if err := errors.Join(os.Symlink(elsewhere+"/tea", own+"/tea"), os.Symlink(shared+"/milk", own+"/milk")); err != nil {
		t.Fatal(err)
	}

	var told []string
	links := func(to string) bool { return !strings.HasPrefix(to, shared) }
	set := NewSet(func() []Folder { return []Folder{{Root: own, Path: ".", Links: links}} }, nil,
		func(path string, found []finding.Finding) { told = append(told, path) })
	list := set.List()
	if named(list, "tea") < 0 || named(list, "milk") >= 0 || len(told) != 1 || !strings.Contains(told[0], "milk") {
		t.Errorf("%+v, told of %v", list, told)
	}
	if res := call(t, New(set.List)[0], `{"name":"tea","file":"more.txt"}`); res.Text != "more" {
		t.Error(res.Text)
	}
}

// A SKILL.md, or a folder above it, is exchanged for a link, a pipe or another folder between
// the look and the open, while many read. Nothing is stolen and nobody waits. DAYCARE_LONG=1
// makes it a minute each.
func TestSkillsWhileSwapped(t *testing.T) {
	runFor := 500 * time.Millisecond
	if os.Getenv("DAYCARE_LONG") != "" {
		runFor = time.Minute
	}

	for name, with := range map[string][2]string{ // of the workspace
		"link as SKILL.md":  {".agents/skills/tea/SKILL.md", "link"},
		"pipe as SKILL.md":  {".agents/skills/tea/SKILL.md", "pipe"},
		"link as skill":     {".agents/skills/tea", "tea"},
		"link as skills":    {".agents/skills", "skills"},
		"link as .agents":   {".agents", "agents"},
		"link as its file":  {".agents/skills/tea/more.txt", "link"},
		"pipe as its file":  {".agents/skills/tea/more.txt", "pipe"},
		"link above a file": {".agents/skills/tea/sub", "tea"},
	} {
		t.Run(name, func(t *testing.T) {
			ws, outside := t.TempDir(), t.TempDir()
			put(t, outside+"/skills/tea/SKILL.md", stolen)
			put(t, outside+"/skills/tea/more.txt", secret)
			put(t, ws+"/.agents/skills/tea/SKILL.md", "---\nname: tea\ndescription: mine\n---\nBoil.")
			put(t, ws+"/.agents/skills/tea/more.txt", "more")
			put(t, ws+"/.agents/skills/tea/sub/more.txt", "more")
			if err := errors.Join(os.Symlink(outside+"/skills/tea/SKILL.md", ws+"/link"), syscall.Mkfifo(ws+"/pipe", 0o600),
				os.Symlink(outside+"/skills/tea", ws+"/tea"), os.Symlink(outside+"/skills", ws+"/skills"),
				os.Symlink(outside, ws+"/agents")); err != nil {
				t.Fatal(err)
			}

			var stop atomic.Bool
			var swaps sync.WaitGroup
			swaps.Go(func() {
				a, b := filepath.Join(ws, with[0]), filepath.Join(ws, with[1])
				for !stop.Load() {
					os.Rename(a, ws+"/kept")
					os.Rename(b, a)
					os.Rename(a, b)
					os.Rename(ws+"/kept", a)
				}
			})

			race(t, ws, runFor)
			stop.Store(true)
			swaps.Wait()
		})
	}
}

// race reads the skill tea of a workspace by several at once.
func race(t *testing.T, ws string, runFor time.Duration) {
	set := NewSet(func() []Folder { return []Folder{{Root: ws, Path: ".agents/skills"}} }, nil, func(string, []finding.Finding) {})
	tool := New(set.List)[0]
	var tries, wins atomic.Int64
	var readers sync.WaitGroup
	end := time.Now().Add(runFor)
	for range 3 {
		readers.Go(func() {
			for time.Now().Before(end) {
				for _, args := range []string{`{"name":"tea"}`, `{"name":"tea","file":"more.txt"}`,
					`{"name":"tea","file":"sub/more.txt"}`} {
					tries.Add(1)
					if res := call(t, tool, args); strings.Contains(res.Text, secret) {
						wins.Add(1)
					}
				}
			}
		})
	}

	done := make(chan struct{})
	go func() { readers.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(runFor + 20*time.Second):
		t.Fatalf("after %d tries somebody waits for a file", tries.Load())
	}

	t.Logf("%d tries, %d wins", tries.Load(), wins.Load())
	if wins.Load() > 0 {
		t.Errorf("%d wins in %d tries", wins.Load(), tries.Load())
	}
}

// A skill that a command made or changed is not the agents' before its owner saw it.
func TestUnseenSkills(t *testing.T) {
	ws := t.TempDir()
	texts, err := unseen.Open(nil, workspace.At(ws))
	if err != nil {
		t.Fatal(err)
	}
	put(t, ws+"/.agents/skills/tea/SKILL.md", "---\nname: tea\ndescription: mine\n---\nBoil.")
	told := map[string]int{}
	set := NewSet(func() []Folder { return []Folder{{Root: ws, Path: ".agents/skills"}} }, texts.Use,
		func(path string, found []finding.Finding) { told[filepath.Base(filepath.Dir(path))] = len(found) })
	set.List()
	ended := texts.Began("mole")
	put(t, ws+"/.agents/skills/tea/SKILL.md", stolen)
	put(t, ws+"/prepared/milk/SKILL.md", strings.ReplaceAll(stolen, "tea", "milk"))
	if err := os.Rename(ws+"/prepared/milk", ws+"/.agents/skills/milk"); err != nil {
		t.Fatal(err)
	}

	for range 2 {
		list := set.List()
		if i := named(list, "tea"); i < 0 || list[i].Description != "mine" || named(list, "milk") >= 0 {
			t.Errorf("%+v", list)
		}
	}

	if told["tea"] != 1 || told["milk"] != 1 {
		t.Errorf("told %v", told)
	}
	ended()
	now := time.Now()
	for _, name := range []string{"tea", "milk"} {
		if err := os.Chtimes(ws+"/.agents/skills/"+name+"/SKILL.md", now, now); err != nil { // touch
			t.Fatal(err)
		}
	}

	list := set.List()
	if i := named(list, "tea"); list[i].Description == "mine" || named(list, "milk") < 0 || told["tea"]+told["milk"] != 0 {
		t.Errorf("%+v, told %v", list, told)
	}
}
