package bench

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// A Series is how one figure grows, in the order of the measurements.
type Series struct {
	Name   string // with the unit of Y: "ready, ms"
	By     string // what X counts: "agents on disk"
	Points []Point
}

// A Point is one measurement of a Series.
type Point struct{ X, Y float64 }

// WriteCSV writes the points of all series below each other, one a row, for a spreadsheet or
// a plotter: figure, by, x, y. Without a point it writes nothing and returns an error.
func WriteCSV(w io.Writer, series ...Series) error {
	out := csv.NewWriter(w)
	written := 0
	for _, s := range series {
		for _, p := range s.Points {
			if written == 0 {
				out.Write([]string{"figure", "by", "x", "y"})
			}
			out.Write([]string{s.Name, s.By, decimal(p.X), decimal(p.Y)})
			written++
		}
	}
	if written == 0 {
		return fmt.Errorf("write the curves: %w", errNoPoints)
	}

	out.Flush()
	return out.Error()
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

var errNoPoints = errors.New("no points")
