// Package apitoken holds the tokens of the control API: what each may do, and the
// file .daycare/tokens.json that keeps them as hashes. Package control asks a Store
// who a request is from; `daycare auth token` changes the file.
package apitoken
