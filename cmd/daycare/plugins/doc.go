// Package plugins lists what settings can name: connectors and model vendors. Each is a
// line here and a folder of its own.
package plugins
