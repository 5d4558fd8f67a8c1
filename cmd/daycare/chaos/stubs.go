package chaos

import (
	"context"
	"io"
)

type Caught struct{ Bug, By string }

func (r *Report) printBugs(w io.Writer) error        { return nil }
func (h *harness) bugs(ctx context.Context) error    { return nil }
func (h *harness) cuts(ctx context.Context) error    { return nil }
func (h *harness) faults(ctx context.Context) error  { return nil }
func (h *harness) random(ctx context.Context) error  { return nil }
func (h *harness) volumes(ctx context.Context) error { return nil }
