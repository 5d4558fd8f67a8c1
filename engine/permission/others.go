package permission

import "time"

// Others are the machines that have the requests of a Queue, too.
type Others struct{ *Queue }

// Met adds a request whose file another machine has put into the folder. fresh is false if it waits
// here already. Errors: those of reading the file.
func (q Others) Met(token string) (p Pending, fresh bool, err error) {
	p, err = readRequest(q.store.path(token))
	if err != nil {
		return Pending{}, false, err
	}
	p.Decision, p.DecidedBy, p.DecidedAt = "", "", time.Time{} // Answered looks at the file again
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, waits := q.waiting.byToken[token]; waits || q.claimed[token] != nil {
		return p, false, nil
	}
	q.waiting.add(p)

	return p, true, nil
}

// Parted takes a request out of the queue that was answered on another machine: that one has it in
// its log. ok is false if it does not wait here.
func (q Others) Parted(token string) (p Pending, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p, ok = q.waiting.byToken[token]
	if ok && q.claimed[token] == nil {
		q.waiting.remove(token)
	}

	return p, ok
}
