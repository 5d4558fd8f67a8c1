// Package connectortest is the contract of a connector as a test. A connector's
// own test describes its platform, a fake of it on loopback, by a Harness and
// calls Run; what passes is safe to put under the engine.
//
// receive.go, revoke.go and night.go have what is asked of the way in, send.go, long.go and
// stream.go of the way out.
package connectortest
