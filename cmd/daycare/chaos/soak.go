package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"daycare/engine/control"
	"daycare/engine/message"
)

// A soak is one workspace that lives long: many agents at work, a user who edits files
// beside them, a process that is killed every minute, a platform that fails a third of its
// calls. It shows what becomes more with time: memory, descriptors, what is lost.

const (
	soakAgents  = 200
	soakPause   = 40 * time.Second // between two messages of one agent, on average
	soakLife    = time.Minute      // of a process; a fifth of a soak that is short
	soakSamples = 360
	soakEdit    = 2 * time.Second // between two edits by hand
	soakReset   = 2 * time.Second // between two resets: an agent's conversation lasts 400 s
)

// soak plays it.
func (h *harness) soak(ctx context.Context) error {
	end := time.Now().Add(h.Soak)
	life := min(soakLife, h.Soak/5)
	c := Case{Way: "soak", Scenario: soaked(end), Patience: h.Soak + 10*time.Minute}
	c.Random = func(int) Death {
		if time.Now().Add(life).After(end) {
			return Death{}
		}
		return Death{After: life}
	}
	p, err := h.newPlay(ctx, c)
	if err != nil {
		return err
	}

	s := newSampler(p)
	r, err := p.run(ctx)
	s.stop()
	if err != nil {
		return err
	}

	h.take(r)
	h.report.Soak = s.summary()
	if h.CSV != "" {
		err = os.WriteFile(h.CSV, s.csv(), 0o600)
	}

	return err
}

// soaked is the scenario.
func soaked(end time.Time) *Scenario {
	s := &Scenario{Name: "soak", Platform: Platform{Fails: true}}
	var all []step
	for i := range soakAgents {
		hook := fmt.Sprintf("s%03d", i)
		s.Hooks = append(s.Hooks, hook)
		all = append(all, talksOn(hook, end))
	}

	s.Steps = []step{together(append(all, editsOn(end), resetsOn(end))...)}

	return s
}

// resetsOn ends the conversation of one agent after the other. The model's context, which an
// agent that is awake keeps in memory, grows until then, as its history does forever.
func resetsOn(end time.Time) step {
	return func(ctx context.Context, u *user) error {
		for n := 0; ; n++ {
			if !sleepUntil(ctx, soakReset, end) {
				return context.Cause(ctx)
			}
			dirs, err := agentFolders(u.root)
			if err != nil {
				return err
			}
			if len(dirs) == 0 {
				continue
			}

			key, ref := fmt.Sprintf("reset-%d", n), filepath.Base(dirs[n%len(dirs)])
			if err := u.tell(ctx, ref, key, "reset", control.Message{Kind: message.Reset}); err != nil {
				return err
			}
		}
	}
}

// talksOn says one thing after the other on a hook, with pauses.
func talksOn(hook string, end time.Time) step {
	words := []string{"hello", "think", "act", "hello", "look", "several", "hello", "think"}
	return func(ctx context.Context, u *user) error {
		for i := 0; ; i++ {
			if !sleepUntil(ctx, time.Duration(rand.Int64N(int64(2*soakPause))), end) {
				return context.Cause(ctx)
			}
			if err := u.say(ctx, hook, fmt.Sprintf("%s-%d", hook, i), words[rand.IntN(len(words))]); err != nil {
				return err
			}
		}
	}
}

// sleepUntil sleeps, but no longer than to the end; false: it was ended there, or before.
func sleepUntil(ctx context.Context, d time.Duration, end time.Time) bool {
	return sleep(ctx, min(d, time.Until(end))) && time.Now().Before(end)
}

// A sample is how a process was at one moment.
type sample struct {
	at       time.Duration // since the beginning
	life     int
	rss      int64 // KiB
	open     int   // descriptors
	threads  int
	accepted int
	answers  int
	again    int
}

// A sampler looks at the process under test now and then.
type sampler struct {
	play  *play
	began time.Time
	done  chan struct{}
	ended sync.WaitGroup
	all   []sample
}

func newSampler(p *play) *sampler {
	if _, err := usage(os.Getpid()); err != nil {
		p.h.report.skip("memory and descriptors: %v", err)
	}
	s := &sampler{play: p, began: time.Now(), done: make(chan struct{})}
	s.ended.Go(func() {
		tick := time.NewTicker(max(p.h.Soak/soakSamples, 100*time.Millisecond))
		defer tick.Stop()
		for {
			select {
			case <-s.done:
				return
			case <-tick.C:
				s.look()
			}
		}
	})

	return s
}

func (s *sampler) stop() {
	close(s.done)
	s.ended.Wait()
}

// look takes a sample. A process that is gone at this moment has none.
func (s *sampler) look() {
	pid := int(s.play.pid.Load())
	if pid == 0 {
		return
	}
	one, err := usage(pid)
	if err != nil || one.rss == 0 {
		return
	}

	one.at, one.life = time.Since(s.began), s.play.user.livesLost()
	one.accepted, one.answers = s.play.user.acceptances(), s.play.user.distinct()
	one.again = len(s.play.user.received()) - one.answers
	s.all = append(s.all, one)
}

// csv is all samples.
func (s *sampler) csv() []byte {
	out := []byte("seconds,life,rss_kib,descriptors,threads,accepted,answers,callbacks_again\n")
	for _, o := range s.all {
		out = fmt.Appendf(out, "%.1f,%d,%d,%d,%d,%d,%d,%d\n", o.at.Seconds(), o.life, o.rss, o.open, o.threads,
			o.accepted, o.answers, o.again)
	}

	return out
}

// A Tenth is a tenth of a soak: least, median and most of what its samples have.
type Tenth struct {
	From     float64  `json:"from"` // seconds
	RSS      [3]int64 `json:"rssKiB"`
	Open     [3]int64 `json:"descriptors"`
	Accepted int      `json:"accepted"` // by its end
	Samples  int      `json:"samples"`
}

// summary is what a soak came to, in tenths.
func (s *sampler) summary() (tenths []Tenth) {
	for i := range 10 {
		part := s.all[i*len(s.all)/10 : (i+1)*len(s.all)/10]
		if len(part) == 0 {
			continue
		}
		t := Tenth{From: part[0].at.Seconds(), Accepted: part[len(part)-1].accepted, Samples: len(part)}
		t.RSS = spreadOf(part, func(o sample) int64 { return o.rss })
		t.Open = spreadOf(part, func(o sample) int64 { return int64(o.open) })
		tenths = append(tenths, t)
	}

	return tenths
}

func spreadOf(part []sample, of func(sample) int64) [3]int64 {
	var all []int64
	for _, o := range part {
		all = append(all, of(o))
	}
	slices.Sort(all)

	return [3]int64{all[0], all[len(all)/2], all[len(all)-1]}
}
