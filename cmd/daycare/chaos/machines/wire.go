package machines

import (
	"net"
	"sync"
)

// A wire is the way of one machine to one server. While it is held nothing comes through, in no
// direction, and neither end notices: what was sent arrives when the wire is released.
type wire struct {
	listener net.Listener
	to       string

	mu      sync.Mutex
	free    *sync.Cond
	held    bool
	conns   map[net.Conn]bool
	pumping sync.WaitGroup
}

// newWire makes a wire to an address.
func newWire(to string) (*wire, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &wire{listener: l, to: to, conns: map[net.Conn]bool{}}
	w.free = sync.NewCond(&w.mu)
	w.pumping.Go(w.accept)

	return w, nil
}

func (w *wire) address() string { return w.listener.Addr().String() }

func (w *wire) accept() {
	for {
		near, err := w.listener.Accept()
		if err != nil {
			return // it was closed
		}
		w.pumping.Go(func() {
			w.wait()
			far, err := net.Dial("tcp", w.to)
			if err != nil { // the server is dead
				near.Close()
				return
			}
			w.mu.Lock()
			w.conns[near], w.conns[far] = true, true
			w.mu.Unlock()
			w.pumping.Go(func() { w.pump(far, near) })
			w.pump(near, far)
		})
	}
}

// pump carries what one side sends to the other, until one of them ends.
func (w *wire) pump(from, to net.Conn) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		w.wait()
		if n > 0 && err == nil {
			_, err = to.Write(buffer[:n])
		}
		if err != nil {
			break
		}
	}
	w.mu.Lock()
	delete(w.conns, from)
	delete(w.conns, to)
	w.mu.Unlock()
	from.Close()
	to.Close()
}

func (w *wire) wait() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.held {
		w.free.Wait()
	}
}

// hold holds the wire, or releases it.
func (w *wire) hold(held bool) {
	w.mu.Lock()
	w.held = held
	w.mu.Unlock()
	w.free.Broadcast()
}

// drop closes all connections, so that what they carry is lost.
func (w *wire) drop() {
	w.mu.Lock()
	for c := range w.conns {
		c.Close()
	}
	w.mu.Unlock()
	w.hold(false)
}

func (w *wire) close() {
	w.listener.Close()
	w.drop()
	w.pumping.Wait()
}
