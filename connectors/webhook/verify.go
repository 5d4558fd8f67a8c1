package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// window is how far a signed timestamp may lie from now, either way.
const window = 5 * time.Minute

// The three ways to sign, each HMAC-SHA256 with the hook's secret:
//
//	Standard Webhooks     webhook-signature: v1,BASE64 …   over "ID.TIMESTAMP.BODY"
//	X-Webhook-Signature   sha256=HEX or HEX                over "TIMESTAMP.BODY"
//	X-Hub-Signature-256   sha256=HEX                       over "BODY"
//
// A request that carries several is judged by the first of them alone.
type scheme struct {
	signature string // header
	timestamp string // header of Unix seconds that is signed too; "": none
	id        string // header of the delivery id that is signed too; "": none
	macs      func(header string) [][]byte
	key       func(secret string) []byte
}

var (
	standard = scheme{"Webhook-Signature", "Webhook-Timestamp", "Webhook-Id", standardMACs, standardKey}
	stamped  = scheme{"X-Webhook-Signature", "X-Webhook-Timestamp", "", hexMAC, plainKey}
	hub      = scheme{"X-Hub-Signature-256", "", "", hubMAC, plainKey}
)

// deliveryHeaders name a delivery, the first found counts.
var deliveryHeaders = []string{"Webhook-Id", "X-Webhook-Delivery", "X-GitHub-Delivery", "Idempotency-Key"}

// maxDeliveryID bounds what a sender may put into a dedupe key, bytes.
const maxDeliveryID = 200

// A refusal is why a request is not trusted. It says nothing that would help to
// forge one, and nothing of what the request held.
type refusal struct {
	status int
	code   string
	reason string
}

func unsigned(reason string) *refusal {
	return &refusal{http.StatusUnauthorized, "unauthorized", reason}
}

// A claim is what a request says of itself before its body is read.
type claim struct {
	scheme    scheme
	macs      [][]byte // any of them may be right
	timestamp string
	at        time.Time // zero where the scheme has no timestamp
	id        string    // of the delivery, "": none given
}

// readClaim reads the headers. Each that matters must be there once: of two, the
// one that is checked here need not be the one that something before us checked.
func readClaim(h http.Header) (claim, *refusal) {
	var c claim
	for _, s := range []scheme{standard, stamped, hub} {
		if h.Get(s.signature) != "" {
			c.scheme = s
			break
		}
	}

	if c.scheme.signature == "" {
		return c, unsigned("no signature: want webhook-signature, X-Webhook-Signature or X-Hub-Signature-256")
	}
	for _, name := range append(deliveryHeaders, c.scheme.signature, c.scheme.timestamp) {
		if len(h.Values(name)) > 1 {
			return c, unsigned("the header " + name + " appears twice")
		}
	}

	if c.macs = c.scheme.macs(h.Get(c.scheme.signature)); len(c.macs) == 0 {
		return c, unsigned("the signature does not have the form of " + c.scheme.signature)
	}
	if c.scheme.timestamp != "" {
		c.timestamp = h.Get(c.scheme.timestamp)
		seconds, err := strconv.ParseInt(c.timestamp, 10, 64)
		if err != nil || seconds <= 0 {
			return c, unsigned("no timestamp: want Unix seconds in " + c.scheme.timestamp)
		}
		c.at = time.Unix(seconds, 0)
	}

	for _, name := range deliveryHeaders {
		if c.id = h.Get(name); c.id != "" {
			break
		}
	}

	if c.scheme.id != "" && h.Get(c.scheme.id) == "" {
		return c, unsigned("no delivery id: want one in " + c.scheme.id)
	}
	if len(c.id) > maxDeliveryID || strings.ContainsFunc(c.id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return c, unsigned(fmt.Sprintf("the delivery id is not 1 to %d printable characters", maxDeliveryID))
	}

	return c, nil
}

// content is what is signed.
func (c claim) content(body []byte) []byte {
	var signed []byte
	if c.scheme.id != "" {
		signed = append(append(signed, c.id...), '.')
	}
	if c.scheme.timestamp != "" {
		signed = append(append(signed, c.timestamp...), '.')
	}

	return append(signed, body...)
}

// check reports whether the body is signed with secret, now. The comparison
// takes the same time wherever a signature goes wrong, and an empty secret, which
// anybody could sign with, never fits.
func (c claim) check(secret string, body []byte, now time.Time) *refusal {
	key := c.scheme.key(secret)
	want := sum(key, c.content(body))
	ok := false
	for _, mac := range c.macs {
		if hmac.Equal(mac, want) {
			ok = true
		}
	}

	if !ok || len(key) == 0 {
		return unsigned("the signature does not match")
	}
	if c.scheme.timestamp == "" {
		// Only a JSON object or array may be signed without a timestamp: else a
		// captured "TIMESTAMP.BODY" of another scheme would be a fine body here.
		if trimmed := strings.TrimLeft(string(body[:min(len(body), 64)]), " \t\r\n"); trimmed == "" ||
			trimmed[0] != '{' && trimmed[0] != '[' {
			return unsigned("X-Hub-Signature-256 is for JSON objects alone")
		}
		return nil
	}
	if away := now.Sub(c.at); away > window || away < -window {
		return &refusal{http.StatusForbidden, "stale", "the timestamp is more than 5 minutes from now"}
	}

	return nil
}

// delivery is the id that this delivery is known by, the same when it is offered
// again: the sender's, or for senders without one a hash of all that was signed.
func (c claim) delivery(secret string, body []byte) string {
	if c.id != "" {
		return c.id
	}
	return "sha256-" + hex.EncodeToString(sum(c.scheme.key(secret), c.content(body)))
}

func sum(key, content []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(content)
	return h.Sum(nil)
}

func plainKey(secret string) []byte { return []byte(secret) }

const standardPrefix = "whsec_"

// standardKey decodes a secret of Standard Webhooks' form; any other is the key
// as it stands. It is empty for one that cannot be decoded.
func standardKey(secret string) []byte {
	encoded, ok := strings.CutPrefix(secret, standardPrefix)
	if !ok {
		return []byte(secret)
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil
	}

	return key
}

func hexMAC(header string) [][]byte {
	mac, err := hex.DecodeString(strings.TrimPrefix(header, "sha256="))
	if err != nil || len(mac) != sha256.Size {
		return nil
	}

	return [][]byte{mac}
}

func hubMAC(header string) [][]byte {
	if !strings.HasPrefix(header, "sha256=") {
		return nil
	}
	return hexMAC(header)
}

// maxSignatures bounds the list of Standard Webhooks, which has one signature for
// each secret while secrets are being changed.
const maxSignatures = 10

func standardMACs(header string) (macs [][]byte) {
	all := strings.Fields(header)
	for _, s := range all[:min(len(all), maxSignatures)] {
		encoded, ok := strings.CutPrefix(s, "v1,")
		mac, err := base64.StdEncoding.DecodeString(encoded)
		if ok && err == nil && len(mac) == sha256.Size {
			macs = append(macs, mac)
		}
	}

	return macs
}

// used remembers which delivery a signature came with while its timestamp is
// good, so that a captured request cannot be sent again under another delivery id
// where the scheme does not sign that. The zero value works.
type used struct {
	mu       sync.Mutex
	new, old map[[sha256.Size]byte]string // hash of hook and signed content -> delivery
	since    time.Time                    // when new was begun
}

// maxUsed bounds one generation; more than that in one window is given up on, the
// oldest first.
const maxUsed = 50_000

// first reports whether this delivery is the only one that content came with.
func (u *used) first(content [sha256.Size]byte, delivery string, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.new == nil || now.Sub(u.since) > 2*window || len(u.new) >= maxUsed {
		u.new, u.old, u.since = map[[sha256.Size]byte]string{}, u.new, now
	}

	before, seen := u.new[content]
	if !seen {
		before, seen = u.old[content]
	}
	if !seen {
		u.new[content] = delivery
	}

	return !seen || before == delivery
}
