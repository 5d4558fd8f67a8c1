package shell

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"daycare/engine/permission"
)

const (
	// maxJobs is how many background processes one agent may have running.
	maxJobs = 16
	// maxFinished is how many that ended stay readable.
	maxFinished = 32
)

// Jobs are the background processes of a runtime. Each has two files in its agent's
// folder of jobs: N.log, the newest of its output, and N.json, what it is and how
// it ended. What still runs in N.json, but in no memory, ended with a runtime
// before.
type Jobs struct {
	folder     func(agent string) string // nil: there are no background processes
	yieldAfter time.Duration

	mu     sync.Mutex
	live   map[string]map[string]*job // by agent and id
	closed bool
	wait   sync.WaitGroup
}

// A jobInfo is N.json.
type jobInfo struct {
	ID        string     `json:"id"`
	Command   string     `json:"command"`
	Workdir   string     `json:"workdir"`
	Domains   []string   `json:"domains,omitempty"` // that it may reach
	StartedAt time.Time  `json:"startedAt"`
	EndedAt   *time.Time `json:"endedAt,omitempty"`
	Code      int        `json:"code,omitempty"`
	Signal    string     `json:"signal,omitempty"`
	TimedOut  bool       `json:"timedOut,omitempty"`
	First     int64      `json:"first,omitempty"` // position of the first byte in N.log
}

// A job is a process that this runtime started.
type job struct {
	agent string
	dir   string
	rule  permission.Access // what a user had to allow; nil: nothing
	// covered reports whether rights still allow it.
	covered func(permission.Set) bool
	info    jobInfo
	run     *running
	log     *jobLog

	mu   sync.Mutex
	read int64 // what poll returned so far
}

func newJobs(folder func(string) string) *Jobs {
	return &Jobs{folder: folder, yieldAfter: yieldAfter, live: map[string]map[string]*job{}}
}

// start starts a process. It is nobody's until adopt or forget.
func (js *Jobs) start(agent string, p process, also *capture) (*job, error) {
	j, err := js.reserve(agent, p)
	if err != nil {
		return nil, err
	}
	if j.log, err = openJobLog(jobPath(j.dir, j.info.ID, ".log"), also); err == nil {
		j.run, err = p.start(j.log)
	}
	if err != nil {
		js.forget(j)
		return nil, err
	}

	js.mu.Lock()
	defer js.mu.Unlock()
	if js.closed { // meanwhile; nobody else would end it
		j.run.kill()
	}

	return j, nil
}

// reserve finds a free number and takes a place among the agent's processes.
func (js *Jobs) reserve(agent string, p process) (*job, error) {
	j := &job{agent: agent, dir: js.folder(agent), rule: p.rule, covered: p.covered,
		info: jobInfo{Command: p.command, Domains: p.domains, Workdir: p.view.Dir, StartedAt: time.Now().UTC().Truncate(time.Millisecond)}}
	if err := os.MkdirAll(j.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make folder of processes: %w", err)
	}

	js.mu.Lock()
	defer js.mu.Unlock()
	if js.closed {
		return nil, errors.New("daycare is ending")
	}
	if len(js.live[agent]) >= maxJobs {
		return nil, fmt.Errorf("%d processes run already; end one first (process kill)", maxJobs)
	}

	last := 0
	for _, info := range saved(j.dir) {
		n, _ := strconv.Atoi(info.ID) // saved returns numbers only
		last = max(last, n)
	}

	for id := range js.live[agent] {
		n, _ := strconv.Atoi(id)
		last = max(last, n)
	}
	j.info.ID = strconv.Itoa(last + 1)
	if js.live[agent] == nil {
		js.live[agent] = map[string]*job{}
	}

	js.live[agent][j.info.ID] = j
	return j, nil
}

// adopt makes it a background process, which ends after timeout at the latest.
func (js *Jobs) adopt(j *job, timeout time.Duration) {
	save(j.dir, j.info)
	js.wait.Go(func() {
		limit := time.NewTimer(timeout)
		defer limit.Stop()
		late := false
		select {
		case <-j.run.done:
		case <-limit.C:
			late = true
			j.run.terminate()
			<-j.run.done
		}

		js.finish(j, late)
	})
}

// finish writes down how it ended.
func (js *Jobs) finish(j *job, late bool) {
	at, end, info := time.Now().UTC().Truncate(time.Millisecond), j.run.end, j.info
	info.EndedAt, info.Code, info.Signal, info.TimedOut, info.First = &at, end.code, end.signal, late, j.log.close()
	save(j.dir, info)
	js.drop(j)
	old := saved(j.dir)
	for _, info := range old[:max(0, len(old)-maxFinished)] {
		if info.EndedAt != nil {
			os.Remove(jobPath(j.dir, info.ID, ".json"))
			os.Remove(jobPath(j.dir, info.ID, ".log"))
		}
	}
}

// forget leaves nothing of a process that never was in the background.
func (js *Jobs) forget(j *job) {
	js.drop(j)
	if j.log != nil {
		j.log.close()
		os.Remove(j.log.path)
	}
}

func (js *Jobs) drop(j *job) {
	js.mu.Lock()
	defer js.mu.Unlock()
	delete(js.live[j.agent], j.info.ID)
}

// Running are the agent's processes that run now, a line each.
func (js *Jobs) Running(agent string) []string {
	js.mu.Lock()
	defer js.mu.Unlock()
	var lines []string
	for _, id := range slices.Sorted(maps.Keys(js.live[agent])) {
		j := js.live[agent][id]
		lines = append(lines, fmt.Sprintf("process %s, since %s: %s", id, j.info.StartedAt.Format("15:04 MST"), oneLine(j.info.Command)))
	}

	return lines
}

// Close ends all processes and waits for it.
func (js *Jobs) Close() { js.end(func(string) bool { return true }, true) }

// End ends the processes of an agent and waits for it.
func (js *Jobs) End(agent string) { js.end(func(a string) bool { return a == agent }, false) }

func (js *Jobs) end(which func(agent string) bool, all bool) {
	js.mu.Lock()
	js.closed = js.closed || all
	var list []*job
	for agent, jobs := range js.live {
		if which(agent) {
			list = slices.AppendSeq(list, maps.Values(jobs))
		}
	}

	js.mu.Unlock()
	for _, j := range list {
		if j.run != nil {
			j.run.terminate()
		}
	}

	for _, j := range list {
		if j.run != nil {
			<-j.run.done
		}
	}

	if all {
		js.wait.Wait()
	}
}

// find returns a process that runs, or what is known of one that ended.
func (js *Jobs) find(agent, id string) (live *job, info jobInfo, err error) {
	js.mu.Lock()
	live = js.live[agent][id]
	js.mu.Unlock()
	if live != nil {
		return live, live.info, nil
	}

	for _, info := range saved(js.folder(agent)) {
		if info.ID == id {
			return nil, info, nil
		}
	}

	return nil, jobInfo{}, fmt.Errorf("there is no process %q; process list shows them", id)
}

func save(dir string, info jobInfo) {
	path := jobPath(dir, info.ID, ".json")
	data, err := json.MarshalIndent(info, "", "  ")
	if err == nil {
		if err = os.WriteFile(path+".tmp", append(data, '\n'), 0o600); err == nil {
			err = os.Rename(path+".tmp", path)
		}
	}
	if err != nil {
		os.Remove(path + ".tmp") // it is only for those who come later
	}
}

// saved are the processes that a folder knows, oldest first.
func saved(dir string) []jobInfo {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // none yet
	}
	var list []jobInfo
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".json")
		if _, err := strconv.Atoi(id); !ok || err != nil {
			continue
		}
		data, err := os.ReadFile(jobPath(dir, id, ".json"))
		info := jobInfo{}
		if err != nil || json.Unmarshal(data, &info) != nil {
			continue
		}

		info.ID = id
		list = append(list, info)
	}

	slices.SortFunc(list, func(a, b jobInfo) int {
		x, _ := strconv.Atoi(a.ID)
		y, _ := strconv.Atoi(b.ID)
		return x - y
	})

	return list
}
