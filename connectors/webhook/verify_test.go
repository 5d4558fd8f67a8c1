package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The signatures are made here by hand, not by the code under test.

func mac(key, content string) []byte {
	h := hmac.New(sha256.New, []byte(key))
	h.Write([]byte(content))
	return h.Sum(nil)
}

func signStamped(r *http.Request, secret, body string, at time.Time) {
	stamp := fmt.Sprint(at.Unix())
	r.Header.Set("X-Webhook-Timestamp", stamp)
	r.Header.Set("X-Webhook-Signature", "sha256="+hex.EncodeToString(mac(secret, stamp+"."+body)))
}

func signHub(r *http.Request, secret, body string) {
	r.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac(secret, body)))
}

func signStandard(r *http.Request, key, id, body string, at time.Time) {
	stamp := fmt.Sprint(at.Unix())
	r.Header.Set("webhook-id", id)
	r.Header.Set("webhook-timestamp", stamp)
	r.Header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac(key, id+"."+stamp+"."+body)))
}

// TestStandardVector is the example of the Standard Webhooks specification's
// reference libraries.
func TestStandardVector(t *testing.T) {
	h := http.Header{}
	h.Set("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek")
	h.Set("webhook-timestamp", "1614265330")
	h.Set("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
	c, refused := readClaim(h)
	if refused != nil {
		t.Fatal(refused)
	}
	if refused := c.check("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", []byte(`{"test": 2432232314}`),
		time.Unix(1614265330, 0)); refused != nil {
		t.Errorf("check = %v, want the known signature to fit", refused)
	}
}

// TestHubVector is the example of GitHub's documentation.
func TestHubVector(t *testing.T) {
	const signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
	macs := hubMAC(signature)
	if len(macs) != 1 || !hmac.Equal(macs[0], sum([]byte("It's a Secret to Everybody"), []byte("Hello, World!"))) {
		t.Error("the known signature does not fit")
	}
}

func TestSignatureForms(t *testing.T) {
	now, body := time.Now(), `{"text":"hi"}`
	encoded := "whsec_" + base64.StdEncoding.EncodeToString([]byte("raw key"))
	forms := []struct {
		name   string
		secret string
		sign   func(r *http.Request)
	}{
		{"stamped with prefix", "s", func(r *http.Request) { signStamped(r, "s", body, now) }},
		{"stamped bare", "s", func(r *http.Request) {
			signStamped(r, "s", body, now)
			r.Header.Set("X-Webhook-Signature", strings.TrimPrefix(r.Header.Get("X-Webhook-Signature"), "sha256="))
		}},
		{"stamped upper case", "s", func(r *http.Request) {
			signStamped(r, "s", body, now)
			r.Header.Set("X-Webhook-Signature", strings.ToUpper(strings.TrimPrefix(r.Header.Get("X-Webhook-Signature"), "sha256=")))
		}},
		{"hub", "s", func(r *http.Request) { signHub(r, "s", body) }},
		{"hub with an encoded secret", encoded, func(r *http.Request) { signHub(r, encoded, body) }},
		{"standard", encoded, func(r *http.Request) { signStandard(r, "raw key", "m1", body, now) }},
		{"standard, plain secret", "s", func(r *http.Request) { signStandard(r, "s", "m1", body, now) }},
		{"standard, second of a list", "s", func(r *http.Request) {
			signStandard(r, "s", "m1", body, now)
			r.Header.Set("webhook-signature", "v1,"+strings.Repeat("A", 43)+"= v1a,xyz "+r.Header.Get("webhook-signature"))
		}},
		{"five minutes old", "s", func(r *http.Request) { signStamped(r, "s", body, now.Add(-window+2*time.Second)) }},
	}
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			r := newRequest("a", body)
			f.sign(r)
			c, refused := readClaim(r.Header)
			if refused == nil {
				refused = c.check(f.secret, []byte(body), now)
			}
			if refused != nil {
				t.Fatalf("refused: %v", refused)
			}

			for _, wrong := range []string{"", "other", f.secret + "x", "whsec_", "whsec_!"} {
				if refused := c.check(wrong, []byte(body), now); refused == nil {
					t.Errorf("the secret %q fits too", wrong)
				}
			}
		})
	}
}

func TestUsed(t *testing.T) {
	var u used
	now := time.Now()
	content := func(i int) [sha256.Size]byte { return sha256.Sum256([]byte(fmt.Sprint(i))) }
	for range 2 {
		if !u.first(content(1), "a", now) {
			t.Error("the same delivery again must pass: the engine drops it")
		}
	}

	if u.first(content(1), "b", now) {
		t.Error("another delivery with the same signature passes")
	}
	if later := now.Add(2*window + time.Second); !u.first(content(2), "c", later) || u.first(content(1), "b", later) {
		t.Error("forgotten while its timestamp may still be good")
	}

	for i := range 3 * maxUsed {
		u.first(content(i), "x", now)
	}
	if got := len(u.new) + len(u.old); got > 2*maxUsed {
		t.Errorf("%d are kept, want at most %d", got, 2*maxUsed)
	}
}

func FuzzReadClaim(f *testing.F) {
	f.Add("v1,AAAA", "1700000000", "id", "X-Webhook-Signature")
	f.Add("sha256=00", "-1", "", "X-Hub-Signature-256")
	f.Add("v1, v1,=", "1e9", "a b", "Webhook-Signature")
	f.Fuzz(func(t *testing.T, signature, timestamp, id, header string) {
		h := http.Header{}
		h.Set(header, signature)
		h.Set("Webhook-Timestamp", timestamp)
		h.Set("X-Webhook-Timestamp", timestamp)
		h.Set("Webhook-Id", id)
		c, refused := readClaim(h)
		if refused == nil && c.check("secret", []byte("{}"), time.Now()) == nil {
			t.Errorf("%q by %s is believed", signature, header)
		}
	})
}

// A content is remembered for two windows of time, and forgotten after the next two.
func TestUsedIsForgotten(t *testing.T) {
	var u used
	begin := time.Now()
	old := sha256.Sum256([]byte("old"))
	if !u.first(old, "a", begin) {
		t.Fatal("the first delivery is refused")
	}

	for n, want := range []bool{false, true} {
		now := begin.Add(time.Duration(n+1) * (2*window + time.Second))
		u.first(sha256.Sum256([]byte(now.String())), "x", now)
		if got := u.first(old, "b", now); got != want {
			t.Errorf("after %v another delivery passes: %v, want %v", now.Sub(begin), got, want)
		}
	}
}

// Only signatures of the known kind and length count, and of many the first ten.
func TestStandardMACs(t *testing.T) {
	encode := base64.StdEncoding.EncodeToString
	good, short := make([]byte, sha256.Size), make([]byte, sha256.Size-1)
	for header, want := range map[string]int{
		"": 0, "v1," + encode(good): 1, encode(good): 0, "v2," + encode(good): 0, "v1," + encode(short): 0, "v1,!": 0,
		"v1,! v1," + encode(good): 1, strings.Repeat("v1,"+encode(good)+" ", maxSignatures+3): maxSignatures,
	} {
		if got := len(standardMACs(header)); got != want {
			t.Errorf("%.30q has %d signatures, want %d", header, got, want)
		}
	}
}

// A signature that was used on another machine is refused here, and one of which that is not known
// is to be sent again.
func TestUsedElsewhere(t *testing.T) {
	seen, away := map[string]string{}, false
	once := func(_ context.Context, key, value string) (string, error) {
		if away {
			return "", errors.New("no server answers")
		}
		if _, ok := seen[key]; !ok {
			seen[key] = value
		}
		return seen[key], nil
	}
	machines := []*Connector{{log: slog.New(slog.DiscardHandler), once: once}, {log: slog.New(slog.DiscardHandler), once: once}}
	for i, test := range []struct {
		machine  int
		content  string
		delivery string
		away     bool
		want     string
	}{
		{0, "1", "a", false, ""}, {1, "1", "a", false, ""}, {1, "1", "b", false, "replayed"}, {0, "1", "b", false, "replayed"},
		{1, "2", "a", true, "replica_away"},
	} {
		away = test.away
		got := ""
		if p := machines[test.machine].replayed(t.Context(), sha256.Sum256([]byte(test.content)), test.delivery, time.Now()); p != nil {
			got = p.code
		}
		if got != test.want {
			t.Errorf("%d: %q, want %q", i, got, test.want)
		}
	}
}
