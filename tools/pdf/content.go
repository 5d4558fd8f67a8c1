package pdf

import "bytes"

// A matrix maps points: x' = a·x + c·y + e, y' = b·x + d·y + f.
type matrix struct{ a, b, c, d, e, f float64 }

var one = matrix{a: 1, d: 1}

// then is m followed by n.
func (m matrix) then(n matrix) matrix {
	return matrix{
		m.a*n.a + m.b*n.c, m.a*n.b + m.b*n.d,
		m.c*n.a + m.d*n.c, m.c*n.b + m.d*n.d,
		m.e*n.a + m.f*n.c + n.e, m.e*n.b + m.f*n.d + n.f,
	}
}

// A state is what q keeps and Q brings back.
type state struct {
	ctm                     matrix
	font                    *font
	size, char, word, scale float64
	leading, rise           float64
}

// A drawing goes through the operators of a page.
type drawing struct {
	file       *file
	state      state
	stack      []state
	text, line matrix // of the letters, of the line's beginning
	out        layout
}

// text is the text of one page.
func (f *file) text(page dict) string {
	d := &drawing{file: f, state: state{ctm: one, scale: 1}, text: one, line: one}
	list, ok := f.get(page["Contents"]).([]any)
	if !ok {
		list = []any{page["Contents"]}
	}

	var all [][]byte
	for _, v := range list {
		if s, ok := f.get(v).(*stream); ok {
			all = append(all, f.unpack(s))
		}
	}

	d.run(bytes.Join(all, []byte("\n")), f.asDict(page["Resources"]), 0)
	return d.out.String()
}

func (d *drawing) run(data []byte, resources dict, depth int) {
	p := &parser{file: d.file, data: data}
	var args []any
	for d.file.left.err == nil {
		v := p.value(0)
		if v == (end{}) {
			return
		}
		w, ok := v.(word)
		if !ok {
			if len(args) < 64 {
				args = append(args, v)
			}
			continue
		}

		switch w {
		case "BI":
			picture(p)
		case "Do":
			d.form(args, resources, depth)
		case "Tf":
			d.setFont(args, resources)
		default:
			d.operate(w, args)
		}

		args = args[:0]
	}
}

// picture goes behind a picture within the operators.
func picture(p *parser) {
	i := bytes.Index(p.data[p.at:], []byte("ID"))
	if i < 0 {
		p.at = len(p.data)
		return
	}

	p.at += i + 2

	for {
		i := bytes.Index(p.data[p.at:], []byte("EI"))
		if i < 0 {
			p.at = len(p.data)
			return
		}

		before := p.at + i - 1
		p.at += i + 2
		if white[p.data[before]] && (p.at >= len(p.data) || white[p.data[p.at]]) {
			return
		}
	}
}

func (d *drawing) form(args []any, resources dict, depth int) {
	key, ok := first(args).(name)
	if !ok || depth >= maxForms {
		return
	}
	s, ok := d.file.get(d.file.asDict(resources["XObject"])[key]).(*stream)
	if !ok || s.dict["Subtype"] != name("Form") {
		return
	}

	back, text, line := d.state, d.text, d.line
	if m, ok := d.file.get(s.dict["Matrix"]).([]any); ok && len(m) == 6 {
		d.state.ctm = d.matrix(m).then(d.state.ctm)
	}
	if own := d.file.asDict(s.dict["Resources"]); own != nil {
		resources = own
	}

	stack := d.stack
	d.stack = nil
	d.run(d.file.unpack(s), resources, depth+1)
	d.state, d.text, d.line, d.stack = back, text, line, stack
}

func (d *drawing) setFont(args []any, resources dict) {
	if len(args) < 2 {
		return
	}
	key, _ := args[0].(name)
	d.state.font, d.state.size = d.file.font(d.file.asDict(resources["Font"])[key]), num(args, 1)
}

func first(args []any) any {
	if len(args) == 0 {
		return nil
	}
	return args[0]
}

func num(args []any, i int) float64 {
	if i >= len(args) {
		return 0
	}
	n, _ := args[i].(float64)
	return n
}

func (d *drawing) matrix(m []any) matrix {
	n := func(i int) float64 { return d.file.number(m[i]) }
	return matrix{n(0), n(1), n(2), n(3), n(4), n(5)}
}

// operate does one operator; those that draw no text are left out. This part is of those that say how text is drawn.
func (d *drawing) operate(w word, args []any) {
	s := &d.state
	switch w {
	case "q":
		if len(d.stack) < maxDepth {
			d.stack = append(d.stack, *s)
		}
	case "Q":
		if n := len(d.stack); n > 0 {
			d.state, d.stack = d.stack[n-1], d.stack[:n-1]
		}
	case "cm":
		if len(args) == 6 {
			s.ctm = d.matrix(args).then(s.ctm)
		}
	case "Tc":
		s.char = num(args, 0)
	case "Tw":
		s.word = num(args, 0)
	case "Tz":
		s.scale = num(args, 0) / 100
	case "TL":
		s.leading = num(args, 0)
	case "Ts":
		s.rise = num(args, 0)
	default:
		d.write(w, args)
	}
}

// write does an operator that says where text is drawn, or draws it.
func (d *drawing) write(w word, args []any) {
	s := &d.state
	switch w {
	case "BT":
		d.text, d.line = one, one
	case "Td":
		d.move(num(args, 0), num(args, 1))
	case "TD":
		s.leading = -num(args, 1)
		d.move(num(args, 0), num(args, 1))
	case "Tm":
		if len(args) == 6 {
			d.line = d.matrix(args)
			d.text = d.line
		}
	case "T*":
		d.move(0, -s.leading)
	case "Tj":
		d.show(first(args))
	case "'":
		d.move(0, -s.leading)
		d.show(first(args))
	case "\"":
		s.word, s.char = num(args, 0), num(args, 1)
		d.move(0, -s.leading)
		if len(args) > 2 {
			d.show(args[2])
		}
	case "TJ":
		list, _ := first(args).([]any)
		for _, v := range list {
			if n, ok := v.(float64); ok {
				d.text = matrix{1, 0, 0, 1, -n / 1000 * s.size * s.scale, 0}.then(d.text)
				continue
			}
			d.show(v)
		}
	}
}

func (d *drawing) move(x, y float64) {
	d.line = matrix{1, 0, 0, 1, x, y}.then(d.line)
	d.text = d.line
}

// show draws a string.
func (d *drawing) show(v any) {
	str, ok := v.(text)
	s := d.state
	if !ok || s.font == nil {
		return
	}

	d.file.left.charge(valueWork * len(str))
	s.font.letters(str, func(l letter) {
		if !d.file.left.charge(4 * len(l.text)) {
			return
		}
		at := matrix{s.size * s.scale, 0, 0, s.size, 0, s.rise}.then(d.text).then(s.ctm)
		width := l.width / 1000
		d.out.add(l.text, at, width)
		step := (width*s.size + s.char) * s.scale
		if l.space {
			step += s.word * s.scale
		}

		d.text = matrix{1, 0, 0, 1, step, 0}.then(d.text)
	})
}
