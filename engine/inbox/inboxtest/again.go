package inboxtest

import (
	"os"
	"syscall"
	"testing"

	"daycare/engine/crash"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

// again: an accept that fails because the process has too many files open is made
// again when it has not, as every connector does. Then the item is open, and there is
// one of it.
func again(t *testing.T, b *bench) {
	it := inbox.Item{Kind: message.Text, Text: "one", Dedupe: "telegram:1"}
	first, err := acceptStarved(t, b, it)
	second := b.offer(it)
	if err == nil && !second.Duplicate {
		t.Errorf("the first was accepted as %s, the second is no duplicate", first.Item)
	}

	b.holds(second.Item)
	b.take(second.Item)
	b.must(b.box.Done(second.Item))
	carrier := b.accept("carries the done line")
	b.crash()
	b.holds(carrier)
}

// acceptStarved accepts while the process can open no file.
func acceptStarved(t *testing.T, b *bench, it inbox.Item) (message.Receipt, error) {
	t.Helper()
	defer Starve(t)()
	return b.box.Accept(t.Context(), it)
}

// Starve lets no file be opened in the process until full is called, as when too many
// are open.
func Starve(t *testing.T) (full func()) {
	t.Helper()
	crash.Alone(t)
	var was syscall.Rlimit
	null, err := os.Open(os.DevNull)
	if err == nil {
		err = syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was)
	}
	if err != nil {
		t.Fatal(err)
	}

	free := null.Fd() // the lowest that is
	null.Close()
	few := was
	setLimit(&few.Cur, free)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}

	return func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
			t.Fatal(err)
		}
	}
}

// setLimit exists because limits are signed on FreeBSD and unsigned elsewhere.
func setLimit[N int64 | uint64](limit *N, to uintptr) { *limit = N(to) }

// sameID: an id names one item, whatever key it comes with, also when it is closed.
func sameID(t *testing.T, b *bench) {
	const id = "namedbysomebodyelse00000"
	offer := func(key, text string) message.Receipt {
		return b.offer(inbox.Item{Kind: message.Text, ID: id, Text: text, Dedupe: key})
	}
	offer("k:1", "one")
	if r := offer("k:2", "two"); !r.Duplicate || r.Item != id {
		t.Errorf("an open id again, with another key: %+v", r)
	}

	b.take(id)
	b.must(b.box.Done(id))
	for range 2 {
		if r := offer("k:3", "three"); !r.Duplicate || r.Item != id {
			t.Errorf("a closed id again, with another key: %+v", r)
		}
		b.holds()
		carrier := b.accept("carries the done line")
		b.crash()
		b.holds(carrier)
		b.take(carrier)
		b.must(b.box.Done(carrier))
	}
}
