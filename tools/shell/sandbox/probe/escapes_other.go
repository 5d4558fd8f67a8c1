//go:build !linux

package probe

func systemEscapes(task) map[string]func() error { return nil }
