package xmpp

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"strings"
)

// A scram proves a password without saying it, and has the server prove that it knows it,
// too (RFC 5802, RFC 7677).
type scram struct {
	hash     func() hash.Hash
	password string
	first    string // our first message, without its header
	nonce    string
	verifier string // what the server must end with
}

// Bounds of how often a server may have the password hashed: fewer would be weak, more would
// keep us busy for minutes.
const (
	leastRounds = 4096
	mostRounds  = 10_000_000
)

// mechanisms are those that we know, best first.
var mechanisms = []struct {
	name string
	hash func() hash.Hash
}{{"SCRAM-SHA-256", sha256.New}, {"SCRAM-SHA-1", sha1.New}}

func newScram(h func() hash.Hash, user, password string) *scram {
	nonce := rand.Text()
	escaped := strings.NewReplacer("=", "=3D", ",", "=2C").Replace(user)
	return &scram{hash: h, password: password, nonce: nonce, first: "n=" + escaped + ",r=" + nonce}
}

// header says that the channel is not bound.
const header = "n,,"

// begin is our first message.
func (s *scram) begin() string { return header + s.first }

// answer answers the challenge of a server.
func (s *scram) answer(challenge string) (string, error) {
	fields := map[string]string{}
	for f := range strings.SplitSeq(challenge, ",") {
		key, value, _ := strings.Cut(f, "=")
		fields[key] = value
	}

	salt, err := base64.StdEncoding.DecodeString(fields["s"])
	rounds, roundsErr := strconv.Atoi(fields["i"])
	switch {
	case fields["m"] != "":
		return "", errors.New("the server wants an unknown extension of SCRAM")
	case err != nil || len(salt) == 0 || roundsErr != nil || rounds < 1 || rounds > mostRounds:
		return "", errors.New("the challenge of the server is malformed")
	case rounds < leastRounds:
		return "", fmt.Errorf("the server hashes the password only %d times, want at least %d", rounds, leastRounds)
	case !strings.HasPrefix(fields["r"], s.nonce) || fields["r"] == s.nonce:
		return "", errors.New("the challenge of the server is not an answer to us")
	}

	salted, err := pbkdf2.Key(s.hash, s.password, salt, rounds, s.hash().Size())
	if err != nil {
		return "", err
	}
	last := "c=" + base64.StdEncoding.EncodeToString([]byte(header)) + ",r=" + fields["r"]
	signed := s.first + "," + challenge + "," + last
	client := s.mac(salted, "Client Key")
	stored := s.hash()
	stored.Write(client)
	proof := s.mac(stored.Sum(nil), signed)
	subtle.XORBytes(proof, proof, client)
	s.verifier = "v=" + base64.StdEncoding.EncodeToString(s.mac(s.mac(salted, "Server Key"), signed))

	return last + ",p=" + base64.StdEncoding.EncodeToString(proof), nil
}

// verify checks that the server knows the password, too.
func (s *scram) verify(end string) error {
	if s.verifier == "" || subtle.ConstantTimeCompare([]byte(end), []byte(s.verifier)) != 1 {
		return errors.New("the server did not prove that it knows the password")
	}
	return nil
}

func (s *scram) mac(key []byte, text string) []byte {
	m := hmac.New(s.hash, key)
	m.Write([]byte(text))
	return m.Sum(nil)
}
