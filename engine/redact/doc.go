// Package redact takes known secrets out of what is written and sent: the log,
// history, answers. cmd/daycare makes one Redactor of the secrets that the
// configuration knows, for the packages that write files.
//
// A secret is found in the spellings in which programs print one: as it is, in
// base64 (both alphabets, and also in the middle of a longer encoded text, as in
// an Authorization header), in hex, percent-encoded, and escaped for JSON. What
// is encrypted, cut in pieces or spelled backwards is not found: this guards
// against accidents, not against deliberate smuggling.
package redact
