package daemon

// Options are the flags of start.
type Options struct {
	Workspace string // the folder that holds .daycare, absolute
	Listen    string // address of the TCP listener; "": as in settings
}

// A Banner is what start says once it runs.
type Banner struct {
	Socket     string
	Settings   string // the file; "" if there is none
	Listen     string // where else the API answers
	Agents     int
	Waiting    int      // items found in inboxes
	Connectors []string // ids
	Provider   string
	Model      string
	Why        string // why that provider: a setting, a key found in the environment, …
	Notes      []string
}
