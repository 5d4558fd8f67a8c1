// Package tools is the contract of what an agent can do: Tool, Spec, Call, Result
// and the replay class. Each family of tools has its folder; a tool is listed
// once, in cmd/daycare/daemon/factory.go.
//
// To add one: write a type with Spec and Run in the folder of its family, return
// it from the family's constructor, and call toolstest.Run on it in the test.
package tools
