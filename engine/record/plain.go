package record

import (
	"bytes"
	"math"
)

// replaced is how a byte that is no UTF-8 is encoded: the line says something else than the record.
var replaced = []byte(`\ufffd`)

// asRead is the record that Decode finds in the line of rec, made without reading it. It is a copy: what others do
// with rec later does not change it. nil: the line has to be read, because it may differ, as paths, times, and the
// arguments that a model wrote do, or because records of this type are rare.
func asRead(rec Record, line []byte) Record {
	if bytes.Contains(line, replaced) {
		return nil
	}
	switch r := rec.(type) {
	case *TurnBegin:
		c := *r
		c.Items = append([]string{}, r.Items...)
		return &c
	case *User:
		return r.asRead()
	case *Assistant:
		return r.asRead()
	case *ToolStart:
		c := *r
		return &c
	case *Delivery:
		c := *r
		return &c
	case *TurnEnd:
		return r.asRead()
	}

	return nil
}

func (r *User) asRead() Record {
	if len(r.Files) > 0 {
		return nil
	}
	c := *r
	c.Files, c.Context, c.Route = nil, copied(r.Context), copied(r.Route)

	return &c
}

func (r *Assistant) asRead() Record {
	if len(r.ToolCalls) > 0 || math.IsNaN(r.Cost) || math.IsInf(r.Cost, 0) || r.Out != nil && len(r.Out.Delivered) > 0 {
		return nil
	}
	c := *r
	c.ToolCalls, c.Thinking = nil, append([]Thinking(nil), r.Thinking...)
	c.Sent, c.Out = copied(r.Sent), copied(r.Out)
	if c.Out != nil {
		c.Out.Delivered = nil
	}

	return &c
}

func (r *TurnEnd) asRead() Record {
	if len(r.Sources) > 0 {
		return nil
	}
	c := *r
	c.Sources, c.Items = nil, append([]string{}, r.Items...)
	c.Once, c.Outs = append([]OnceGrant(nil), r.Once...), append([]Out{}, r.Outs...)
	for i := range c.Outs {
		c.Outs[i].Delivered = append([]int(nil), c.Outs[i].Delivered...)
	}

	return &c
}

// copied is a copy of what p points to; nil: none.
func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}
