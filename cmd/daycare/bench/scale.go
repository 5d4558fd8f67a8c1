package bench

import (
	"fmt"
	"math"
)

// A scale maps values to pixels of one axis.
type scale struct {
	min, max float64 // values; powers of ten on a logarithmic axis
	from, to float64 // pixels
	log      bool
}

// scales finds the ranges of both axes.
func scales(c Chart, series []Series) (x, y scale, err error) {
	x = scale{min: math.Inf(1), max: math.Inf(-1), from: left, to: width - right, log: c.Log}
	y = scale{min: math.Inf(1), max: math.Inf(-1), from: height - bottom, to: top, log: c.Log}
	for _, s := range series {
		for _, p := range s.Points {
			if bad(p.X, c.Log) || bad(p.Y, c.Log) {
				return x, y, fmt.Errorf("series %s: the point %v, %v cannot be drawn", s.Name, p.X, p.Y)
			}
			x.min, x.max = min(x.min, p.X), max(x.max, p.X)
			y.min, y.max = min(y.min, p.Y), max(y.max, p.Y)
		}
	}

	if math.IsInf(x.min, 1) {
		return x, y, errNoPoints
	}
	if !c.Log {
		y.min = min(y.min, 0) // a cut axis makes small differences look large
	}

	return x.rounded(), y.rounded(), nil
}

func bad(v float64, log bool) bool {
	return math.IsNaN(v) || math.IsInf(v, 0) || log && v <= 0
}

// rounded widens the range to whole steps, so that it is never empty.
func (s scale) rounded() scale {
	if s.log {
		s.min, s.max = math.Pow(10, math.Floor(math.Log10(s.min))), math.Pow(10, math.Ceil(math.Log10(s.max)))
		if s.min == s.max {
			s.max *= 10
		}
		return s
	}
	if s.min == s.max {
		s.max = s.min + 1
	}

	step := s.step()
	s.min, s.max = math.Floor(s.min/step)*step, math.Ceil(s.max/step)*step
	return s
}

// step is 1, 2 or 5 times a power of ten, about a fifth of the range.
func (s scale) step() float64 {
	raw := (s.max - s.min) / 5
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5} {
		if raw <= m*power {
			return m * power
		}
	}

	return 10 * power
}

// ticks are the values that get a line and a label.
func (s scale) ticks() []float64 {
	var out []float64
	if s.log {
		for v := s.min; v <= s.max*1.01; v *= 10 {
			out = append(out, v)
		}
		return out
	}

	step := s.step()
	for i := range int(math.Round((s.max-s.min)/step)) + 1 {
		out = append(out, s.min+float64(i)*step)
	}

	return out
}

// at is the pixel of a value.
func (s scale) at(v float64) float64 {
	lo, hi := s.min, s.max
	if s.log {
		v, lo, hi = math.Log10(v), math.Log10(lo), math.Log10(hi)
	}
	return s.from + (v-lo)/(hi-lo)*(s.to-s.from)
}
