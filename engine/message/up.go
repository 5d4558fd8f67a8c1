package message

import "context"

type upKey struct{}

// WithUp returns a context in which Up calls f.
func WithUp(ctx context.Context, f func()) context.Context { return context.WithValue(ctx, upKey{}, f) }

// Up says that a connector is connected to its platform, in the context that its Run was called
// with. Until then it is connecting.
func Up(ctx context.Context) {
	if f, ok := ctx.Value(upKey{}).(func()); ok {
		f()
	}
}
