package providers

import (
	"crypto/sha256"
	"hash"
	"hash/maphash"
	"slices"
	"sync"
)

// Kept is what the requests of one conversation begin with, as it was made for those before: a request costs what is new in it,
// however long the conversation is. The zero Kept has nothing. Several requests may use it at once.
type Kept struct {
	mu    sync.Mutex
	wires []*beginning // the one that was used last at the end; rarely more than one

	counted []*Message
	chars   int // of counted

	fixed uint64 // of the system prompt and the tools
	sums  Sent   // of these, without one of a body
}

// maxWires is how many wires keep a beginning: a conversation may change between two models.
const maxWires = 2

// A beginning is the first messages of a conversation as one wire writes them.
type beginning struct {
	key      string
	messages []*Message
	bytes    []byte // their encodings, each with a comma after it

	head   uint64    // of what stood before them, where they were summed
	sum    hash.Hash // SHA-256 of head and bytes[:summed]; nil: not summed yet
	summed int
}

// begin returns messages, of which there are more in every request, as encode writes them, each with a comma after it.
func (k *Kept) begin(key string, messages []*Message, encode func(*Message) []byte) (*beginning, []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	b := k.of(key, messages)
	for _, m := range messages[len(b.messages):] {
		enc := m.Encoded(key, encode)
		b.grow(len(enc) + 1)
		b.bytes = append(append(b.bytes, enc...), ',')
		m.forget(key)
	}
	b.messages = messages

	return b, slices.Clip(b.bytes)
}

// grow makes room for n bytes, and for few more: most agents wait.
func (b *beginning) grow(n int) {
	if need := len(b.bytes) + n; need > cap(b.bytes) {
		b.bytes = append(make([]byte, 0, need+need/8), b.bytes...)
	}
}

// of is what a wire keeps of messages. It only grows: where messages begin otherwise there is a new one. mu is held.
func (k *Kept) of(key string, messages []*Message) *beginning {
	b := &beginning{key: key}
	if i := slices.IndexFunc(k.wires, func(b *beginning) bool { return b.key == key }); i >= 0 {
		if begins(messages, k.wires[i].messages) {
			b = k.wires[i]
		}
		k.wires = slices.Delete(k.wires, i, i+1)
	} else if len(k.wires) == maxWires {
		k.wires = slices.Delete(k.wires, 0, 1)
	}
	k.wires = append(k.wires, b)

	return b
}

// begins reports whether all begin with first.
func begins(all, first []*Message) bool {
	return len(first) <= len(all) && (len(first) == 0 || &first[0] == &all[0] || slices.Equal(first, all[:len(first)]))
}

// seed is of hashes that are only compared inside this process.
var seed = maphash.MakeSeed()

// sumOf returns the SHA-256 of head and of what begin returned, to be continued.
func (k *Kept) sumOf(b *beginning, head, begun []byte) hash.Hash {
	k.mu.Lock()
	defer k.mu.Unlock()
	of := maphash.Bytes(seed, head)
	if b.sum == nil || b.head != of || b.summed > len(begun) {
		b.sum, b.head, b.summed = sha256.New(), of, 0
		b.sum.Write(head)
	}
	b.sum.Write(begun[b.summed:])
	b.summed = len(begun)

	return clone(b.sum)
}

// clone is a hash that continues where h is.
func clone(h hash.Hash) hash.Hash {
	c, err := h.(hash.Cloner).Clone() // a SHA-256 can be cloned, whoever made it
	if err != nil {
		panic(err)
	}

	return c
}

// charsOf is the length of messages, of which there are more in every request, in characters.
func (k *Kept) charsOf(messages []*Message) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !begins(messages, k.counted) {
		k.counted, k.chars = nil, 0
	}
	for _, m := range messages[len(k.counted):] {
		k.chars += m.Chars()
	}
	k.counted = messages

	return k.chars
}

// fixedSums are the sums of the system prompt and the tools of a request: those of the request before it if they are the same.
func (k *Kept) fixedSums(req *Request) Sent {
	var h maphash.Hash
	h.SetSeed(seed)
	maphash.WriteComparable(&h, req.System)
	for _, t := range req.Tools {
		maphash.WriteComparable(&h, t.Name)
		maphash.WriteComparable(&h, t.Description)
		maphash.WriteComparable(&h, len(t.Schema))
		h.Write(t.Schema)
	}

	k.mu.Lock()
	defer k.mu.Unlock()
	if fixed := h.Sum64(); fixed != k.fixed || k.sums == (Sent{}) {
		k.fixed, k.sums = fixed, Sent{System: SystemSum(req.System), Tools: ToolsSum(req.Tools)}
	}

	return k.sums
}
