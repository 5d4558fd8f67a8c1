package connectors

// A Verification is what a user compares to be sure who encrypts: keys of devices as fingerprints,
// base64 without padding.
type Verification struct {
	User        string         `json:"user"`
	Device      string         `json:"device"`
	Fingerprint string         `json:"fingerprint"`
	Published   bool           `json:"published"` // others are shown the same key
	Others      []VerifyDevice `json:"others"`    // of who has access
}

// A VerifyDevice is one device of a user who has access.
type VerifyDevice struct {
	User        string `json:"user"`
	Device      string `json:"device"`
	Name        string `json:"name"`
	Fingerprint string `json:"fingerprint"`
	Read        bool   `json:"read"` // its messages are read, and it gets keys
}
