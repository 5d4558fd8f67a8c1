package config

// Tracing is where traces of what agents do go, by OTLP over HTTP.
type Tracing struct {
	Endpoint string            `json:"endpoint" check:"url"` // "": nothing is traced
	Headers  map[string]string `json:"headers"`
}
