// Package cuid makes identifiers.
package cuid

import "crypto/rand"

// length of an id: 124 random bits.
const length = 24

const letters, digits = "abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrstuvwxyz0123456789"

// New returns a random id of the form of a cuid2: 24 lower-case letters and digits, the first one a letter.
// It cannot be guessed.
func New() string {
	var id [length]byte
	rand.Read(id[:]) // it never fails: without random numbers the program ends
	for i := range id {
		set := digits
		if i == 0 {
			set = letters
		}
		for most := 256 / len(set) * len(set); int(id[i]) >= most; { // else the first characters of the set would come more often
			rand.Read(id[i : i+1])
		}
		id[i] = set[int(id[i])%len(set)]
	}

	return string(id[:])
}
