// Package providertest is the contract of providers.Provider as a test. A wire
// format calls Run with its transcripts (answers as the vendor documents them, in
// testdata/transcripts/NAME.sse, beside the events they must become in
// NAME.events), Fuzz with the same, and Golden and Prefix for what it sends.
package providertest
