// Package message defines the messages between connectors and the engine: addresses,
// incoming messages, answers and their delivery results.
package message
