// Package openapi describes the API of package control as an OpenAPI 3.1 document, for programs
// that generate clients and for tools of users. It is made of the operations themselves: paths and
// parameters from the tags of what goes in, schemas from the Go types of the bodies with the
// comments of their members as descriptions, errors from package fault. comments.json has the
// comments; a test writes it (go test ./engine/control/openapi -update) and compares.
package openapi
