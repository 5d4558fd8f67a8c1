package term

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// SinceFlag adds --since to a command.
func SinceFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "since", "", "only entries newer than a duration (90m, 12h, 7d) or a date (2026-11-20)")
}

// SinceTime reads what --since was given; "" is the zero time.
func SinceTime(cmd *cobra.Command, s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02 15:04", time.RFC3339} {
		if at, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return at, nil
		}
	}

	d, err := Length(s)
	if err != nil || d < 0 {
		return time.Time{}, Usage(cmd, "--since %q is neither a duration (90m, 12h, 7d) nor a date (2026-11-20)", s)
	}

	return now.Add(-d), nil
}

// Length is time.ParseDuration with days and weeks in front.
func Length(s string) (time.Duration, error) {
	for unit, one := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if number, ok := strings.CutSuffix(s, unit); ok {
			n, err := strconv.ParseFloat(number, 64)
			if err != nil {
				return 0, fmt.Errorf("read %q: %w", s, err)
			}
			return time.Duration(n * float64(one)), nil
		}
	}

	return time.ParseDuration(s)
}
