package address

import (
	"crypto/sha256"
	"math/big"
)

// childDigits is how many digits of the sum an id of a child has, behind its "a".
const childDigits = 23

// ChildID is the id of the agent that a tool call starts: "a" and 23 digits of
// base36(SHA-256(parent/call)). Each call makes a new agent, and a call that is
// repeated after a crash finds the one that it made before.
func ChildID(parent, call string) string {
	sum := sha256.Sum256([]byte(parent + "/" + call))
	digits := new(big.Int).SetBytes(sum[:]).Text(36)
	for len(digits) < childDigits {
		digits = "0" + digits
	}

	return "a" + digits[:childDigits]
}
