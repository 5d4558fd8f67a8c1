//go:build !goolm

package e2ee

import "context"

// Built reports whether this build can encrypt.
const Built = false

// Open returns ErrAbsent.
func Open(context.Context, Options) (Machine, error) { return nil, ErrAbsent }
