package pdf

import (
	"bytes"
	"context"
	"slices"
)

// A file is a PDF and what is left of its limits.
type file struct {
	left    meter
	data    []byte
	where   map[int]place // of each object, the newest
	trailer dict
	fonts   map[ref]*font
}

// A place is where an object stands: in the file, or in a stream of objects.
type place struct {
	data []byte
	at   int
}

// A meter is what is left of the limits of one Read. err is sticky: after it nothing more
// is read.
type meter struct {
	ctx      context.Context
	unpacked int // bytes that may still be unpacked
	work     int // that may still be done: bytes looked at, and valueWork for each value
	check    int // at which amount of work left ctx is asked next
	err      error
}

// newMeter begins with the whole of the limits.
func newMeter(ctx context.Context) meter {
	return meter{ctx: ctx, unpacked: maxUnpacked, work: maxWork, check: maxWork}
}

// charge counts work and reports whether there may be more.
func (m *meter) charge(n int) bool {
	m.work -= n
	switch {
	case m.err != nil:
	case m.work <= 0:
		m.err = ErrTooLarge
	case m.work < m.check:
		m.err, m.check = m.ctx.Err(), m.work-1<<20
	}

	return m.err == nil
}

// scan finds every object. The last one of a number counts, as later versions of a
// file are appended to it.
func (f *file) scan() {
	f.where, f.trailer, f.fonts = map[int]place{}, dict{}, map[ref]*font{}
	p := &parser{file: f, data: f.data}
	for f.left.err == nil {
		i := bytes.IndexAny(p.data[p.at:], "ot") // obj, trailer: the rest is skipped fast
		if i < 0 {
			return
		}
		p.at += i
		f.left.charge(i)

		switch rest := p.data[p.at:]; {
		case bytes.HasPrefix(rest, []byte("obj")):
			number, ok := objectNumber(p.data[:p.at])
			p.at += len("obj")
			if ok {
				f.object(p, number)
			}
		case bytes.HasPrefix(rest, []byte("trailer")):
			p.at += len("trailer")
			if d, ok := p.value(0).(dict); ok {
				f.trail(d)
			}
		default:
			p.at++
		}
	}
}

// trail takes what a trailer, or a stream in its place, says.
func (f *file) trail(d dict) {
	for _, key := range []name{"Root", "Encrypt"} {
		if d[key] != nil {
			f.trailer[key] = d[key]
		}
	}
}

// objectNumber reads "12 0 " backwards from before "obj".
func objectNumber(before []byte) (int, bool) {
	number := func() (int, bool) {
		before = bytes.TrimRight(before, " \t\r\n\f\x00")
		i := len(before)
		for i > 0 && len(before)-i < 9 && before[i-1] >= '0' && before[i-1] <= '9' {
			i--
		}

		n := 0
		for _, c := range before[i:] {
			n = n*10 + int(c-'0')
		}
		ok := i < len(before)
		before = before[:i]

		return n, ok
	}

	// The tail is enough, and trimming the whole would cost its length each time.
	before = before[max(0, len(before)-64):]
	if _, ok := number(); !ok {
		return 0, false
	}

	return number()
}

// object notes the object whose value begins at p, and goes behind it.
func (f *file) object(p *parser, number int) {
	if len(f.where) >= maxObjects {
		f.left.err = ErrTooLarge
		return
	}
	f.where[number] = place{p.data, p.at}
	s, ok := f.read(p).(*stream)
	if !ok {
		return
	}

	switch s.dict["Type"] {
	case name("XRef"):
		f.trail(s.dict)
	case name("ObjStm"):
		f.objects(s)
	}
}

// objects notes what is in a stream of objects: pairs of number and place, then the
// objects.
func (f *file) objects(s *stream) {
	data := f.unpack(s)
	n, first := f.number(s.dict["N"]), f.number(s.dict["First"])
	p := &parser{file: f, data: data}
	for range int(min(n, float64(len(data)))) {
		number, ok := p.value(0).(float64)
		at, also := p.value(0).(float64)
		if !ok || !also || f.left.err != nil || len(f.where) >= maxObjects {
			return
		}
		if at += first; at >= 0 && at < float64(len(data)) {
			f.where[int(number)] = place{data, int(at)}
		}
	}
}

// read reads one object: a value, or a stream.
func (f *file) read(p *parser) any {
	v := p.value(0)
	if n, ok := v.(float64); ok && p.keyword("0 R") {
		return ref(n)
	}
	d, ok := v.(dict)
	if !ok {
		return v
	}
	if !p.keyword("stream") {
		return d
	}
	if p.peek(0) == '\r' {
		p.at++
	}
	if p.peek(0) == '\n' {
		p.at++
	}

	return f.body(p, d)
}

// body reads a stream's data. Its length counts if "endstream" stands behind it;
// a reference to a length is not followed, as it may stand further on.
func (f *file) body(p *parser, d dict) *stream {
	s := &stream{dict: d}
	start := p.at
	if n, ok := d["Length"].(float64); ok && n >= 0 && n < float64(len(p.data)-start) {
		p.at = start + int(n)
		if p.keyword("endstream") {
			s.raw = p.data[start : start+int(n)]
			return s
		}
	}

	n := bytes.Index(p.data[start:], []byte("endstream"))
	if n < 0 {
		n = len(p.data) - start
	}
	p.at = start + n
	f.left.charge(n)
	s.raw = bytes.TrimSuffix(bytes.TrimSuffix(p.data[start:start+n], []byte("\n")), []byte("\r"))

	return s
}

// get follows references to a value. Of a stream it gives the stream.
func (f *file) get(v any) any {
	for range maxForms {
		r, ok := v.(ref)
		if !ok {
			return v
		}
		at, ok := f.where[int(r)]
		if !ok || f.left.err != nil {
			return nil
		}
		v = f.read(&parser{file: f, data: at.data, at: at.at})
	}

	return nil
}

// asDict is a dictionary, or that of a stream.
func (f *file) asDict(v any) dict {
	switch v := f.get(v).(type) {
	case dict:
		return v
	case *stream:
		return v.dict
	}

	return nil
}

func (f *file) number(v any) float64 {
	n, _ := f.get(v).(float64)
	return n
}

// catalog looks for the root of a file that does not say which it is.
func (f *file) catalog() dict {
	numbers := make([]int, 0, len(f.where))
	for n := range f.where {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)

	for _, n := range slices.Backward(numbers) {
		if d, ok := f.get(ref(n)).(dict); ok && d["Type"] == name("Catalog") {
			return d
		}
	}

	return nil
}
