// Package browser tests the page of `daycare web` the way its users meet it: the real
// command, a real daemon of a workspace of its own with the scripted model, and chromium.
// Without chromium or its headless shell the tests are skipped and say so.
//
// A test makes a workspace (newWorkspace), starts its daemon, and opens a page, in a window with cookies and storage of its own,
// which is emptied for the next test. What the page is asked to do is what a user can do: click what
// has a role and a name, press keys, read text. Errors in the console and reports of the
// content security policy fail the test unless it expects them.
//
//	go test ./cmd/daycare/browser                              all of it
//	go test ./cmd/daycare/browser -run TestPictures -update    makes docs/pictures/web anew
//	DAYCARE_PICTURES=/tmp/p go test ./cmd/daycare/browser      also writes a picture of each failure there
package browser
