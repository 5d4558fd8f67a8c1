package chat

import (
	"errors"
	"net/http"
	"strconv"

	"daycare/engine/disk"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

// Refuse answers a platform that posts its events with why one was not taken, so
// that it posts it again later.
func Refuse(w http.ResponseWriter, err error) {
	var fast *message.TooFast
	status, after, text := http.StatusServiceUnavailable, 0, "not accepted"
	switch {
	case errors.As(err, &fast):
		status, after, text = http.StatusTooManyRequests, fast.Seconds(), "too many messages from this sender"
	case errors.Is(err, inbox.ErrFull):
		status, after, text = http.StatusTooManyRequests, 5, "inbox is full" // a turn takes seconds
	case errors.Is(err, disk.ErrFull):
		after, text = 30, "no space to store it" // a user has to act
	}

	if after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(after))
	}
	http.Error(w, text, status)
}
