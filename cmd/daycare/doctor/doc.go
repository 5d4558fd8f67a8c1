// Package doctor looks for what is wrong in a workspace, repairs it, checks single files,
// prints their schemas, and collects what nothing needs any more: the commands doctor,
// validate, schema and gc. All four know files from one table, kinds.go.
package doctor
