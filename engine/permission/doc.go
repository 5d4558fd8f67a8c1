// Package permission defines what an agent can do and how it requests more: Access and Set with
// their tags, Request and Decision, and the durable queue of requests in .daycare/permissions.
package permission
