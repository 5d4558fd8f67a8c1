package providers

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"
)

// maxErrorBody is how much of an error page is read; maxWhole bounds an answer
// that comes in one piece because the server does not stream.
const (
	maxErrorBody = 64 << 10
	maxWhole     = 32 << 20
	// maxAnswer bounds an answer that does not end, in bytes of all that it says,
	// thinks and calls: twenty times the longest answer of any model.
	maxAnswer = 16 << 20
	// maxSilent bounds what comes without saying anything: the whole answer again, which some services send, and signs of life.
	maxSilent = 4 * maxAnswer
)

// An Exchange is one streaming request: what the wires have in common. It turns
// everything that can go wrong on the way into a *Failure.
type Exchange struct {
	Provider string // id
	Client   *http.Client
	URL      string
	Header   http.Header
	Body     *Body
	Model    string        // that is asked for
	Request  *Request      // for the estimate of what the vendor does not report
	Secrets  []string      // values that no error may contain
	Idle     time.Duration // longest silence of the stream; 0 takes IdleTimeout
}

// A Decoder is the reading half of a wire format, made again for every stream.
type Decoder interface {
	// Decode returns what a frame means. Complete or Error is the last event of
	// all; the slice is valid until the next call.
	Decode(Frame) []Event
	// End is what is left to say where the connection ended cleanly before that.
	End() []Event
}

// errIdle is the cause of the watchdog's cancel.
var errIdle = errors.New("stream went silent")

// Events sends the request and yields what the decoder makes of the answer, as
// Provider.Stream has to. Leaving the loop closes the connection.
func (x *Exchange) Events(ctx context.Context, d Decoder) iter.Seq[Event] {
	return x.events(d, func(each func(Frame) bool) error { return x.run(ctx, each) })
}

// given is Events for an answer that is there already, in one piece.
func (x *Exchange) given(d Decoder, answer string) iter.Seq[Event] {
	return x.events(d, func(each func(Frame) bool) error {
		each(Frame{Data: answer})
		return nil
	})
}

func (x *Exchange) events(d Decoder, run func(each func(Frame) bool) error) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		var m meter
		over := false
		pass := func(ev Event) bool {
			m.count(ev)
			switch e := ev.(type) {
			case Complete:
				if over = true; e.Usage == (Usage{}) {
					e.Usage = EstimateUsage(x.Request, m.chars)
				}
				e.Asked, e.Model = x.Model, cmp.Or(e.Model, x.Model) // some servers do not name it
				e.Sent = x.Body.Sum()
				ev = e
			case Error:
				over = true
			}

			if m.full() && !over {
				over, ev = true, Error{x.endless()}
			}
			return yield(ev) && !over
		}
		more := true
		all := func(evs []Event) bool {
			for _, ev := range evs {
				if more = pass(ev); !more {
					break
				}
			}

			return more
		}
		err := run(func(f Frame) bool {
			evs := d.Decode(f)
			if len(evs) > 0 {
				return all(evs)
			}
			m.silent += len(f.Data)
			return !m.full()
		})
		switch {
		case more && !over && m.silent > maxSilent:
			yield(Error{x.endless()})
		case !more:
		case err != nil:
			yield(Error{err})
		default:
			all(d.End())
		}
	}
}

func (x *Exchange) endless() *Failure {
	return &Failure{Kind: Rejected, Provider: x.Provider, Message: fmt.Sprintf("the answer did not end within %d MiB", maxAnswer>>20)}
}

// A meter counts what an answer has by now.
type meter struct {
	chars         int // of what the model wrote
	said          int // bytes of text, thinking and signatures, and what each call takes
	pieces, whole int // bytes of the arguments of calls, as they grow and as they end; each may come without the other
	silent        int // bytes of what meant nothing
}

func (m *meter) count(ev Event) {
	const call = 64 // bytes beside its names
	switch e := ev.(type) {
	case ContentDelta:
		m.chars, m.said = m.chars+utf8.RuneCountInString(e.Text), m.said+len(e.Text)
	case ThinkingDelta:
		m.chars, m.said = m.chars+utf8.RuneCountInString(e.Text), m.said+len(e.Text)+len(e.Signature)
	case ToolUseStart:
		m.said += call + len(e.ID) + len(e.Name)
	case ToolUseDelta:
		m.pieces += len(e.Arguments)
	case ToolUseStop:
		m.chars, m.whole = m.chars+len(e.Arguments), m.whole+len(e.Arguments)
	}
}

func (m *meter) full() bool {
	return m.said+max(m.pieces, m.whole) > maxAnswer || m.silent > maxSilent
}

// run returns nil when all is read or the loop was left.
func (x *Exchange) run(parent context.Context, yield func(Frame) bool) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	resp, err := x.send(ctx)
	if err != nil {
		return x.broken(parent, ctx, err)
	}
	defer resp.Body.Close()

	idle := x.Idle
	if idle == 0 {
		idle = IdleTimeout
	}
	watchdog := time.AfterFunc(idle, func() { cancel(errIdle) })
	defer watchdog.Stop()

	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode != http.StatusOK:
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
		if parent.Err() != nil {
			return context.Cause(parent)
		}
		return x.refused(resp, string(body))
	case kind == "text/html":
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
		return x.failure(resp, Rejected, "answered with "+pageTitle(string(body))+", not with a stream: check baseURL")
	case kind == "application/json":
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxWhole))
		if err != nil {
			return x.broken(parent, ctx, err)
		}
		yield(Frame{Data: string(body)})
		return nil
	}

	events := newSSEReader(resp.Body, func() { watchdog.Reset(idle) })
	defer events.close()
	for {
		frame, err := events.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return x.broken(parent, ctx, err)
		}

		// Who reads may take long, with a full screen or disk: that is not the
		// service's silence.
		watchdog.Stop()
		if !yield(frame) {
			return nil
		}

		watchdog.Reset(idle)
	}
}

func (x *Exchange) send(ctx context.Context) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, x.URL, x.Body.Reader())
	if err != nil {
		return nil, &Failure{Kind: Rejected, Provider: x.Provider, Err: fmt.Errorf("make request: %w", err)}
	}
	req.ContentLength = x.Body.Len()
	req.GetBody = func() (io.ReadCloser, error) { return x.Body.Reader(), nil }
	req.Header = x.Header

	// A redirect would carry the key and the conversation to another place.
	client := *x.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client.Do(req)
}

// refused reads an answer that is not 200.
func (x *Exchange) refused(resp *http.Response, body string) error {
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		return x.failure(resp, Rejected, "redirects to "+resp.Header.Get("Location")+": set that as baseURL")
	}
	a := ReadAnswer(resp.StatusCode, body)
	if strings.TrimSpace(a.Message) == "" {
		a.Message = http.StatusText(resp.StatusCode)
	}

	f := x.failure(resp, a.Kind(), a.Message)
	f.RetryAfter = max(f.RetryAfter, a.Wait)

	return f
}

func (x *Exchange) failure(resp *http.Response, kind Kind, message string) *Failure {
	secret := newRedactor(x.Secrets)
	return &Failure{
		Kind:       kind,
		Provider:   x.Provider,
		Status:     resp.StatusCode,
		RetryAfter: retryAfter(resp.Header, time.Now()),
		Message:    short(secret.text(message)),
		RequestID:  short(secret.text(requestID(resp.Header))),
	}
}

func requestID(h http.Header) string {
	for _, name := range []string{"Request-Id", "X-Request-Id", "X-Generation-Id"} {
		if id := h.Get(name); id != "" {
			return id
		}
	}

	return ""
}

// broken says why a connection failed: the caller's end, the watchdog, or the net.
func (x *Exchange) broken(parent, ctx context.Context, err error) error {
	if parent.Err() != nil {
		return context.Cause(parent)
	}
	var f *Failure
	if errors.As(err, &f) {
		f.Err = newRedactor(x.Secrets).err(f.Err)
		return f
	}

	f = &Failure{Kind: Broken, Provider: x.Provider, Err: newRedactor(x.Secrets).err(err)}
	var cert *tls.CertificateVerificationError
	switch {
	case errors.Is(context.Cause(ctx), errIdle):
		f.Err, f.Message = errIdle, "stream went silent, no event in time"
	case errors.Is(err, errLongLine), errors.As(err, &cert):
		f.Kind = Rejected // it would be the same the next time
	case nothingListens(err):
		f.Kind, f.Message = Down, "nothing listens at "+hostOf(x.URL)+" (connection refused)"
	case errors.Is(err, io.ErrUnexpectedEOF):
		f.Message = "connection broke in the middle of the answer"
	}

	return f
}

// nothingListens reports a connection that an address of this machine refused.
func nothingListens(err error) bool {
	var op *net.OpError
	if !errors.Is(err, syscall.ECONNREFUSED) || !errors.As(err, &op) {
		return false
	}
	at, ok := op.Addr.(*net.TCPAddr)

	return ok && at.IP.IsLoopback()
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}

	return u.Host
}

// Told is the failure for an error that came inside a stream.
func (x *Exchange) Told(a Answer) *Failure {
	f := &Failure{Kind: a.Kind(), Provider: x.Provider, Message: short(newRedactor(x.Secrets).text(a.Message))}
	if n, err := strconv.Atoi(a.Code); err == nil && n >= 400 && n < 600 {
		f.Status = n
	}

	return f
}

// Ended is the failure for a stream that ended without its end mark.
func (x *Exchange) Ended() *Failure {
	return &Failure{Kind: Broken, Provider: x.Provider, Message: "stream ended without its end mark"}
}

// Garbage is the failure for an event that is not of the wire format.
func (x *Exchange) Garbage(data string) *Failure {
	return &Failure{Kind: Broken, Provider: x.Provider,
		Message: short("unreadable event in the stream: " + newRedactor(x.Secrets).text(data))}
}
