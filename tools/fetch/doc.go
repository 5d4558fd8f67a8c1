// Package fetch gives agents the web: web_fetch reads a page, web_search asks a
// search service.
//
// # Where requests may go
//
// A host must be granted (@web:host, or @web for all); a redirect to another host
// counts as a new request for it. This opens public addresses only: the address is
// judged when it is dialled, after the name was looked up, at every hop, so neither a
// spelling of 127.0.0.1 nor a name server that changes its mind leads inside
// (transport.go). This machine and its network need a right of their own, to one port
// (@lan:host:port). Addresses of a link, such as a cloud's metadata, are never reached
// (engine/lan).
//
// A page is made a tree in one pass (tree.go), in time and memory that grow with its length
// alone, and that tree is converted to Markdown (page.go).
//
// What a page says is text for the model to work with, never instructions.
package fetch
