// Package crashtest makes the durable steps of an operation fail, one at a time: code that
// says that something is done although a step of it failed has lost it.
package crashtest
