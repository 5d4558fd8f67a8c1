package inbox

import (
	"bytes"
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
		r.remember(hash, k, r.now)
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

// keyList is the content of the keys line of a rotated file: what is not too
// old, at most MaxKeys, without the keys in but, newest last. idOf reads an id.
func (ix *index) keyList(now time.Time, but map[uint64]bool, idOf func(key) string) []string {
	type aged struct {
		hash uint64
		key
	}
	oldest := now.Add(-DedupeWindow).Unix()
	var all []aged
	for h, k := range ix.keys {
		if k.at >= oldest && !but[h] {
			all = append(all, aged{h, k})
		}
	}
	slices.SortFunc(all, func(a, b aged) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return int(a.off - b.off)
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
