package inbox

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Dedupe keys outlive their items by a week. In memory a key is 64 bits, when it
// came and where its item's id can be read; in a rotated file it is an element
// of the keys line: "HASH SECONDS ID".

// A key is a dedupe key that was accepted.
type key struct {
	at  int64 // seconds since 1970
	off int64 // of its item's line, or of its element in a keys line; -1: unknown
	ran int64 // when it was accepted, in seconds since the mailbox was opened; 0: before
}

// ageless is an age that no key has: one of the two times was read from a wrong clock,
// as that of a machine without a battery, which begins in 1970.
const ageless = 10 * 365 * 24 * time.Hour

// know remembers the key of an item that was just accepted.
func (ix *index) know(item *Item, off int64, a ages) {
	if item.Dedupe != "" {
		ix.keys[hash64(item.Dedupe)] = key{at: a.now().Unix(), off: off, ran: int64(time.Since(a.opened) / time.Second)}
	}
}

// ages tells how old keys are.
type ages struct {
	now    func() time.Time
	opened time.Time // by the process's own clock, which nobody sets
}

// young reports whether a key still tells duplicates. Where the clock cannot have been
// right both when the key came and now, the time counts for which the mailbox is open.
func (a ages) young(k key) bool {
	age := a.now().Sub(time.Unix(k.at, 0))
	if age < 0 || age > ageless {
		age = time.Since(a.opened) - time.Duration(k.ran)*time.Second
	}

	return age <= DedupeWindow
}

// carried reads a keys line.
func (r *reader) carried(keys []string, off int64, raw []byte) {
	at := 0
	for _, s := range keys {
		hash, when, ok := parseKey(s)
		if !ok {
			continue
		}
		k := key{at: when, off: -1}
		if i := bytes.Index(raw[at:], []byte(s)); i >= 0 {
			at += i
			k.off = off + int64(at)
		}

		r.keys[hash] = k
	}
}

func parseKey(s string) (hash uint64, at int64, ok bool) {
	digits, rest, _ := strings.Cut(s, " ")
	seconds, _, _ := strings.Cut(rest, " ")
	hash, err := strconv.ParseUint(digits, 16, 64)
	if err != nil {
		return 0, 0, false
	}
	at, err = strconv.ParseInt(seconds, 10, 64)

	return hash, at, err == nil
}

// keyHead is how much of a line is read to learn the id in it.
const keyHead = 256

// idAt reads the item id, and the seq if it is there, of a key's place in the
// file, given the bytes from there on. Both are empty if it is not there.
func idAt(raw []byte) (id string, seq int64) {
	if !bytes.HasPrefix(raw, []byte("{")) {
		element, _, _ := bytes.Cut(raw, []byte{'"'})
		if f := bytes.Fields(element); len(f) == 3 {
			return string(f[2]), 0
		}
		return "", 0
	}

	// Our own lines have seq, at, type and id in front, in this order.
	dec := json.NewDecoder(bytes.NewReader(raw))
	var name string
	for isKey := false; ; isKey = !isKey {
		tok, err := dec.Token()
		if err != nil {
			return "", seq
		}

		switch v := tok.(type) {
		case json.Delim:
			if v != '{' || name != "" {
				return "", seq
			}
			isKey = false
		case string:
			if isKey {
				name = v
			} else if name == "id" {
				return v, seq
			}
		case float64:
			if name == "seq" {
				seq = int64(v)
			}
		}
	}
}

// keyList is the content of the keys line of a rotated file: what is still young, at
// most MaxKeys, without the keys in but, newest last. idOf reads an id.
func (ix *index) keyList(a ages, but map[uint64]bool, idOf func(key) string) []string {
	type aged struct {
		hash uint64
		key
	}
	var all []aged
	for h, k := range ix.keys {
		if a.young(k) && !but[h] {
			all = append(all, aged{h, k})
		}
	}

	slices.SortFunc(all, func(a, b aged) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.off, b.off))
	})

	if len(all) > MaxKeys {
		all = all[len(all)-MaxKeys:]
	}
	list := make([]string, len(all))
	for i, k := range all {
		list[i] = fmt.Sprintf("%016x %d %s", k.hash, k.at, idOf(k.key))
	}

	return list
}

// keyBytes is about what one key takes in a keys line.
const keyBytes = 56
