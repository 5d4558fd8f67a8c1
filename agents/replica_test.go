package agents

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"daycare/engine/disk"
	"daycare/engine/disk/disktest"
)

// onAReplica is the name of the test in which each bench has a replica.
const onAReplica = "TestOnAReplica"

// What an agent takes up after an end or a death another machine takes up that has only what was replicated.
func TestOnAReplica(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"an orderly stop":                   TestOrderlyStopSuspendsAndResumes,
		"a poisonous turn":                  TestPoisonousTurnIsSetAside,
		"what interrupts an answer":         TestWhatInterruptsAnAnswer,
		"calls through a search":            TestCallsThroughASearchKeepThePrefix,
		"where a turn was cut":              TestATurnIsTakenUpWhereItWasCut,
		"a lost message of a turn":          TestALostMessageOfATurnIsTakenAgain,
		"a cut answer":                      TestACutAnswerIsKeptWithItsCost,
		"a recorded decision":               TestARecordedDecisionIsConcluded,
		"an answer in the inbox":            TestAnAnswerInTheInboxIsNotAskedForAgain,
		"calls that need an approval":       TestWhichCallsNeedAnApproval,
		"a delivery during a call":          TestDeliveryIsRecordedDuringAModelCallAndATool,
		"what a call knows of its turn":     TestWhatACallKnowsOfItsTurn,
		"a hook of a turn that was cut":     TestAHookEndsATurnThatWasCut,
		"a stop during a hook of a call":    TestAStopDuringAHookLeavesTheCall,
		"a stop during a hook of a message": TestAStopDuringAHookLeavesTheMessage,
		"a pause at a budget":               TestAnAgentPausesAtABudgetAndGoesOn,
		"a report with the end of a turn":   TestAReportIsPromisedWithTheTurnsEnd,
		"a decision before a death":         TestADecisionIsConcludedAfterADeath,
		"a call that a death cut":           TestOnceCoversTheCallThatADeathCut,
		"which answer applies":              TestWhichAnswerCounts,
		"a summary before a stop":           TestAStopLeavesASummaryForTheNextStart,
		"a summary before a restart":        TestSummarySurvivesARestart,
		"what a start acts on":              TestAStartSyncsWhatItActsOn,
		"what may have been answered":       TestWhatMayHaveBeenAnsweredIsNotAnsweredAgain,
	} {
		t.Run(name, test)
	}
}

// replicated are the files of an agent that a replica has.
func replicated(name string) bool {
	return slices.Contains([]string{"descriptor.json", "state.json", "inbox.jsonl", "history.jsonl"}, name) ||
		strings.HasPrefix(name, "blobs/") || strings.HasPrefix(name, "history/")
}

// replicate gives a bench of a part of TestOnAReplica a replica. In the end that has what was made durable: a log in it
// is the beginning of the one in the folder, and any other file the same.
func (b *bench) replicate() {
	b.t.Helper()
	if !strings.HasPrefix(b.t.Name(), onAReplica+"/") {
		return
	}
	r := disktest.New(b.dir, replicated, nil)
	for name, data := range replicatedIn(b.t, b.dir) {
		if err := r.Put(disk.Content{Path: filepath.Join(b.dir, name), Data: []byte(data)}); err != nil {
			b.t.Fatal(err)
		}
	}
	b.vol.Replicate(r, true)
	b.replica = r
	b.t.Cleanup(func() {
		there, here := r.Files(), replicatedIn(b.t, b.dir)
		for name := range here {
			isLog := strings.HasSuffix(name, ".jsonl") && !strings.HasPrefix(name, "history/")
			if there[name] != here[name] && !(isLog && strings.HasPrefix(here[name], there[name])) {
				b.t.Errorf("%s is %q\nand in the replica %q", name, here[name], there[name])
			}
		}
	})
}

// takeOver gives the bench the folder that another machine would have: what the replica has, and no more.
func (b *bench) takeOver() {
	b.t.Helper()
	if b.replica == nil {
		return
	}
	there := b.replica.Files()
	for name := range replicatedIn(b.t, b.dir) {
		if _, ok := there[name]; !ok {
			b.must(os.Remove(filepath.Join(b.dir, name)))
		}
	}
	for name, data := range there {
		path := filepath.Join(b.dir, name)
		b.must(os.MkdirAll(filepath.Dir(path), 0o700))
		b.must(os.WriteFile(path, []byte(data), 0o600))
	}
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// replicatedIn are the contents of the files in a folder that are replicated, by name.
func replicatedIn(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		rel, rerr := filepath.Rel(dir, path)
		if err != nil || rerr != nil || !d.Type().IsRegular() || !replicated(rel) {
			return err
		}
		data, err := os.ReadFile(path)
		files[rel] = string(data)

		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	return files
}
