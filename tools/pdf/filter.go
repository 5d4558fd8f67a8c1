package pdf

import (
	"bytes"
	"compress/flate"
	"encoding/ascii85"
	"io"

	"golang.org/x/image/tiff/lzw"
)

// unpack gives the data of a stream. Of a stream that is damaged, or packed in a way
// that only pictures are, it gives what there is: nothing, often.
func (f *file) unpack(s *stream) []byte {
	filters, ok := f.get(s.dict["Filter"]).([]any)
	if !ok {
		filters = []any{s.dict["Filter"]}
	}
	parms, ok := f.get(s.dict["DecodeParms"]).([]any)
	if !ok {
		parms = []any{s.dict["DecodeParms"]}
	}

	data := s.raw
	for i, v := range filters[:min(len(filters), maxForms)] {
		var parm dict
		if i < len(parms) {
			parm = f.asDict(parms[i])
		}
		kind, _ := f.get(v).(name)
		data = f.filter(kind, parm, data)
	}

	return data
}

// filter undoes one filter. What is packed is work as well as what comes out of it: it may be nothing, and a stream may be
// named any number of times.
func (f *file) filter(kind name, parm dict, data []byte) []byte {
	if !f.left.charge(len(data) + filterWork) {
		return nil
	}
	switch kind {
	case "":
		return f.left.took(data)
	case "FlateDecode", "Fl":
		if len(data) > 2 && data[0]&0x0f == 8 && (int(data[0])<<8|int(data[1]))%31 == 0 {
			data = data[2:] // without the checksum at the end, which is often wrong
		}
		return f.predict(parm, f.left.inflate(flate.NewReader(bytes.NewReader(data))))
	case "LZWDecode", "LZW":
		return f.predict(parm, f.left.inflate(lzw.NewReader(bytes.NewReader(data), lzw.MSB, 8)))
	case "ASCIIHexDecode", "AHx":
		p := &parser{file: f, data: data, at: -1} // there is no < before it
		return f.left.took([]byte(p.hex()))
	case "ASCII85Decode", "A85":
		if i := bytes.Index(data, []byte("~>")); i >= 0 {
			data = data[:i]
		}
		return f.left.inflate(ascii85.NewDecoder(bytes.NewReader(bytes.TrimPrefix(data, []byte("<~")))))
	case "RunLengthDecode", "RL":
		return f.left.runs(data)
	}

	return nil
}

// took counts what a stream contains.
func (m *meter) took(data []byte) []byte {
	if m.unpacked -= len(data); m.unpacked < 0 {
		m.err = ErrTooLarge
		return nil
	}

	return data
}

// inflate reads what can be read within the limit.
func (m *meter) inflate(r io.Reader) []byte {
	var b bytes.Buffer
	for m.err == nil {
		n, err := io.CopyN(&b, r, 1<<20)
		if m.unpacked -= int(n); m.unpacked < 0 {
			m.err = ErrTooLarge
		}
		if err != nil {
			break
		}
		if m.err == nil {
			m.err = m.ctx.Err()
		}
	}

	return b.Bytes()
}

func (m *meter) runs(data []byte) []byte {
	var out []byte
	for len(data) > 1 && data[0] != 128 && m.err == nil {
		if n := int(data[0]) + 1; n <= 128 {
			n = min(n, len(data)-1)
			out, data = append(out, data[1:1+n]...), data[1+n:]
			continue
		}
		out, data = append(out, bytes.Repeat(data[1:2], 257-int(data[0]))...), data[2:]
		if len(out) > m.unpacked {
			m.err = ErrTooLarge
		}
	}

	m.unpacked -= len(out)
	return out
}

// predict undoes the filters of PNG, which streams of objects may have.
func (f *file) predict(parm dict, data []byte) []byte {
	if f.number(parm["Predictor"]) < 10 {
		return data
	}
	of := func(key name, none float64) int {
		if n := f.number(parm[key]); n > 0 && n < 1<<16 {
			none = n
		}
		return int(none)
	}
	bits := of("Colors", 1) * of("BitsPerComponent", 8)
	pixel, width := max((bits+7)/8, 1), min((of("Columns", 1)*bits+7)/8, len(data))
	var out []byte
	before := make([]byte, width)
	for len(data) > 1 {
		kind, row := data[0], data[1:min(1+width, len(data))]
		data = data[1+len(row):]
		for i := range row {
			var left, up, corner byte
			if up = before[i]; i >= pixel {
				left, corner = row[i-pixel], before[i-pixel]
			}

			switch kind {
			case 1:
				row[i] += left
			case 2:
				row[i] += up
			case 3:
				row[i] += byte((int(left) + int(up)) / 2)
			case 4:
				row[i] += paeth(left, up, corner)
			}
		}

		copy(before, row)
		out = append(out, row...)
	}

	return out
}

// paeth is the one of three that is nearest to left + up - corner.
func paeth(left, up, corner byte) byte {
	p := int(left) + int(up) - int(corner)
	far := func(b byte) int { return max(p-int(b), int(b)-p) }
	switch {
	case far(left) <= far(up) && far(left) <= far(corner):
		return left
	case far(up) <= far(corner):
		return up
	}

	return corner
}
