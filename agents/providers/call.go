package providers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// The retry policy. There is no other: providers make one request a call.
const (
	// MaxRequests bounds the requests of one Call over all providers of the chain.
	MaxRequests = 8
	// firstDelay doubles with every further failure of the same provider, and is
	// spread by ±20 % so that agents that failed together do not return together.
	firstDelay = 2 * time.Second
	spread     = 0.2
	// patience is the longest Retry-After that is waited for.
	patience = 5 * time.Minute
	// maxEmpty is how often an empty answer is asked for anew.
	maxEmpty = 2
	// maxDown is how often a server of this machine is asked that does not run.
	maxDown = 2
)

// A Caller calls models: the first provider of Chain, again where it makes sense,
// then the next. It has no state and may be used from many goroutines at once.
//
// The requests are shared out evenly: of a chain of two each provider gets four,
// so that a provider that is down costs 14 seconds and not four minutes.
type Caller struct {
	Chain []Provider // in fallback order
	// Sleep waits between requests; its error is the cause of ctx's end. nil: on the clock of the machine.
	Sleep func(ctx context.Context, d time.Duration) error
}

// Call makes one call and returns the whole answer. watch, which may be nil, sees
// the events of the stream as they come, but for Complete and Error, an Asking before
// each request, a Wasted after one that was paid for in vain, and a Retry before each
// further request; Retry.Discard takes back what it saw. A provider
// other than the first is asked for its own model, as names of models differ.
//
// The error is a *Failure, or the cause of ctx's end. Part of an answer is never
// returned.
func (c *Caller) Call(ctx context.Context, req *Request, watch func(Event)) (*Response, error) {
	if len(c.Chain) == 0 {
		return nil, errors.New("call a model: no provider is configured")
	}
	if watch == nil {
		watch = func(Event) {}
	}

	a := attempts{req: req, watch: watch, sleep: c.Sleep}
	if a.sleep == nil {
		a.sleep = sleep
	}
	for i, p := range c.Chain {
		share := (MaxRequests - a.made + len(c.Chain) - i - 1) / (len(c.Chain) - i)
		next := ""
		if i+1 < len(c.Chain) {
			next = c.Chain[i+1].ID()
		}

		r, err := a.provider(ctx, p, share, next)
		if err == nil {
			return r, nil
		}
		if !errors.Is(err, errNext) {
			return nil, err
		}
		if a.req.Model != "" {
			other := *req
			other.Model = ""
			a.req = &other
		}
	}

	return nil, a.last
}

// errNext says that the next provider of the chain is to be asked.
var errNext = errors.New("trying next provider")

// attempts are the requests of one Call.
type attempts struct {
	req   *Request
	watch func(Event)
	made  int      // requests so far
	empty int      // answers with nothing in them so far
	last  *Failure // of the newest request
	sleep func(context.Context, time.Duration) error
}

// provider asks p up to share times. It returns errNext where next may be asked.
func (a *attempts) provider(ctx context.Context, p Provider, share int, next string) (*Response, error) {
	for try := 1; try <= share; try++ {
		a.made++
		r, shown, err := a.once(ctx, p)
		if err == nil {
			return r, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}

		f := Classify(p.ID(), err)
		a.last = f
		if !f.Retryable() {
			return nil, f
		}

		of := MaxRequests
		if f.Kind == Down {
			share = min(share, maxDown)
			of = a.made + share - try
		}

		note := Retry{N: a.made, Of: of, Status: f.Status, Reason: f.Error(), Discard: shown}
		if try >= share || f.RetryAfter > patience {
			if next == "" || a.made == MaxRequests {
				return nil, f
			}
			note.Fallback = next
			a.watch(note)
			return nil, errNext
		}

		note.In = delay(try, f.RetryAfter)
		a.watch(note)
		if err := a.sleep(ctx, note.In); err != nil {
			return nil, err
		}
	}

	return nil, errNext // no share left for it
}

// once makes one request. shown reports whether watch saw anything of it.
func (a *attempts) once(ctx context.Context, p Provider) (r *Response, shown bool, err error) {
	var c collector
	a.watch(Asking{p.ID(), a.req.Model})
	for ev := range p.Stream(ctx, a.req) {
		switch ev := ev.(type) {
		case Complete:
			r := c.response(p.ID(), a.req, ev)
			if r.Empty() {
				a.watch(Wasted{p.ID(), ev.Model, r.Usage})
				return nil, c.shown, a.noteEmpty(p)
			}
			return r, c.shown, nil
		case Error:
			a.wasted(p, &c)
			return nil, c.shown, ev.Err
		default:
			c.add(ev)
			a.watch(ev)
		}
	}

	a.wasted(p, &c)
	return nil, c.shown, &Failure{Kind: Broken, Provider: p.ID(), Message: "stream ended without a final event"}
}

// wasted tells what a request without an end cost, where anything came of it: the
// vendor takes money for what it has said, and says no figure.
func (a *attempts) wasted(p Provider, c *collector) {
	if n := c.chars(); n > 0 {
		a.watch(Wasted{p.ID(), a.req.Model, EstimateUsage(a.req, n)})
	}
}

// noteEmpty makes an empty answer a failure: models give one now and then, and
// the next try is mostly better; one that insists on it is not asked forever.
func (a *attempts) noteEmpty(p Provider) error {
	a.empty++
	f := &Failure{Kind: Broken, Provider: p.ID(), Err: ErrEmpty}
	if a.empty > maxEmpty {
		f.Kind = Rejected
		f.Err = fmt.Errorf("%w, %d times", ErrEmpty, a.empty)
	}

	return f
}

// delay is how long to wait after the n-th failure of a provider.
func delay(n int, asked time.Duration) time.Duration {
	if asked > 0 {
		return asked
	}
	d := firstDelay << (n - 1)
	return d + time.Duration((rand.Float64()*2-1)*spread*float64(d))
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
