package inbox_test

import (
	"testing"
	"time"

	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/inbox"
	"daycare/engine/inbox/inboxtest"
)

func open(t testing.TB, dir string) (*inbox.File, []finding.Finding) {
	t.Helper()
	f, found, err := inbox.Open(disk.NewVolume(dir), dir, inbox.NewQuota(0), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return f, found
}

func TestMailbox(t *testing.T) {
	inboxtest.Run(t, func(t *testing.T, dir string) inbox.Mailbox {
		f, found := open(t, dir)
		if len(found) > 0 {
			t.Errorf("findings in an inbox that nobody touched: %v", found)
		}
		return f
	})
}
