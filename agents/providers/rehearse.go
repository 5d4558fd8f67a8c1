package providers

import (
	"context"
	"errors"
	"fmt"
)

// errRehearsed ends the stream of a request that was only made, not sent.
var errRehearsed = errors.New("the request was made and not sent")

// ErrNoWire: a provider sends nothing, so its requests have no bytes.
var ErrNoWire = errors.New("the provider sends nothing")

// A rehearsal is where a request is kept instead of being sent.
type rehearsal struct {
	out    *Outgoing
	remote *Remote
	answer string // in one piece, that is read as if it had been sent; "": none
}

type rehearsalKey struct{}

func rehearsed(ctx context.Context) *rehearsal {
	r, _ := ctx.Value(rehearsalKey{}).(*rehearsal)
	return r
}

// Rehearse returns the body that p would send for req, through all that p is wrapped in, and
// sends nothing. It needs no key. Errors: ErrNoWire.
func Rehearse(ctx context.Context, p Provider, req *Request) (*Body, error) {
	out, _, err := prepared(ctx, p, req)
	if err != nil {
		return nil, err
	}

	return out.Body, nil
}

// prepared is the request that p would send for req, and who would send it. Errors: ErrNoWire.
func prepared(ctx context.Context, p Provider, req *Request) (*Outgoing, *Remote, error) {
	var r rehearsal
	var last error
	for ev := range p.Stream(context.WithValue(ctx, rehearsalKey{}, &r), req) {
		if e, ok := ev.(Error); ok {
			last = e.Err
		}
	}

	switch {
	case r.out != nil:
		return r.out, r.remote, nil
	case last != nil && ctx.Err() != nil:
		return nil, nil, last
	}

	return nil, nil, fmt.Errorf("make request for %s: %w", p.ID(), ErrNoWire)
}
