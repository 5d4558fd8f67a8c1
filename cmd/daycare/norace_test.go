//go:build !race

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What follows starts hundreds of processes, which do the work. With the race detector
// race_test.go plays some of the scripts, and the other tests run the same commands and daemons.

func TestScripts(t *testing.T) {
	t.Parallel()
	playScripts(t)
}

// TestFiveHundredBackgroundAgents: 50 agents start 500 on a model that takes no time.
// None is lost: each is heard of once by the one that started it.
func TestFiveHundredBackgroundAgents(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes a while")
	}
	h := newChatHouse(t, crowdScript(0), "agents: { maxChildren: 10, maxRunningChildren: 500 }\nlog: { level: error }")
	c := h.play(50)
	if c.started != 500 || c.refused != 0 {
		t.Errorf("%d were started and %d refused %v, want 500 and none", c.started, c.refused, c.refusedBy)
	}
	t.Logf("500 agents of 50: %d turns in %s, %.0f a second; at once %d; %s", c.turns, c.took.Round(time.Millisecond),
		float64(c.turns)/c.took.Seconds(), c.atOnce, c.usage)
}

// TestBackgroundAgentsAtTheDefaultLimits: so many are started that the limits are reached. With the race detector there are
// fewer, in TestSomeBackgroundAgents: what 500 do takes ten times as much of a processor with it and is the same.
func TestBackgroundAgentsAtTheDefaultLimits(t *testing.T) {
	t.Parallel()
	c := atTheDefaultLimits(t, 50)
	if c.refusedBy["agents.maxRunningChildren"] == 0 {
		t.Errorf("none of %d was refused because too many run: %v", c.started+c.refused, c.refusedBy)
	}
}

// TestFirstAnswerWins has all decisions. With the race detector, TestOneFirstAnswerWins has one by each pair of ways, which take
// the same path for another one.
func TestFirstAnswerWins(t *testing.T) {
	t.Parallel()
	firstAnswerWins(t, [2]string{"once", "deny"}, [2]string{"deny", "always"}, [2]string{"always", "once"})
}

// Every recipe works from top to bottom, with the files that it gives.
func TestRecipes(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../docs/recipes/*.md")
	if err != nil || len(paths) < 5 {
		t.Fatalf("%d recipes: %v", len(paths), err)
	}
	for _, path := range paths {
		if name := filepath.Base(path); name != "README.md" {
			t.Run(name, func(t *testing.T) { tour(t, "recipes/"+name, 5) })
		}
	}
}

// The tours of these documents are done, each in one workspace from top to bottom, and what
// comes back is what stands there.
func TestFilesTour(t *testing.T)      { tour(t, "files.md", 20) }
func TestLabTour(t *testing.T)        { tour(t, "lab.md", 5) }
func TestLivingTour(t *testing.T)     { tour(t, "living.md", 5) }
func TestConceptsTour(t *testing.T)   { tour(t, "concepts.md", 10) }
func TestTeamServerTour(t *testing.T) { tour(t, "team-server.md", 8) }

// TestQuickstart does what docs/quickstart.md says, from a folder with nothing in it to
// the first answers, and looks that what comes back is what stands there.
func TestQuickstart(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	t.Setenv("HOME", t.TempDir())
	data, err := os.ReadFile("../../docs/quickstart.md")
	if err != nil {
		t.Fatal(err)
	}

	url, dir := modelServer(t, ""), filepath.Join(t.TempDir(), "notes")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { exec.Command("daycare", "--workspace", dir, "stop").Run() })
	doc := string(data)
	asked := ttys.FindStringSubmatch(doc)
	if asked == nil {
		t.Fatal("the first screen is not in the document")
	}

	typeAlong(t, dir, asked[1], url)
	ran := 0
	for _, block := range consoles.FindAllStringSubmatch(doc, -1) {
		for _, part := range strings.Split("\n"+block[1], "\n$ ")[1:] {
			command, want, _ := strings.Cut(part, "\n")
			cmd := exec.Command("sh", "-c", strings.ReplaceAll(command, serverInDocs, url)+" 2>&1")
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("$ %s\n%s%v", command, out, err)
			}
			if got := strings.ReplaceAll(string(out), url, serverInDocs); !likeness(want).MatchString(strings.TrimRight(got, "\n ")) {
				t.Fatalf("$ %s\nsays\n%s\nand in docs/quickstart.md stands\n%s", command, got, want)
			}
			ran++
		}
	}

	if ran < 8 {
		t.Errorf("only %d commands were run", ran)
	}
}
