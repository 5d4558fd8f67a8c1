// Package inspect gives the API of a daemon what the commands print that look at files: why, doctor,
// validate, schema, logs and the size of a context.
package inspect
