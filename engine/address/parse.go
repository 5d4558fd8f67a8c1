package address

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"daycare/engine/finding"
)

// A parser reads a descriptor that has something to be told about, member by
// member, so that each finding has its place.
type parser struct {
	file  string
	data  []byte
	found []finding.Finding
	at    map[string]int64 // offset of each member's value
}

func (p *parser) tell(s finding.Severity, id string, offset int64, reason string) {
	f := finding.Finding{ID: id, Severity: s, File: p.file, Reason: reason}
	f.Line, f.Column = finding.Position(p.data, offset)
	if s == finding.Error {
		f.Remedy = "Correct the file; until then the last good version is in force, or the agent takes no messages if there never was one."
	}
	p.found = append(p.found, f)
}

func (p *parser) descriptor() (d Descriptor) {
	if !p.members(&d) {
		return d
	}
	for _, bad := range d.check() {
		p.tell(finding.Error, "descriptor-invalid", p.at[bad.member], bad.reason)
	}
	return d
}

// members reads the object; false: it is none, and nothing else is to be said.
func (p *parser) members(d *Descriptor) bool {
	var whole json.RawMessage
	if err := json.Unmarshal(p.data, &whole); err != nil {
		offset := int64(len(p.data))
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			offset = syntax.Offset - 1
		}
		p.tell(finding.Error, "descriptor-syntax", offset, "not JSON: "+err.Error())
		return false
	}
	dec := json.NewDecoder(bytes.NewReader(p.data))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		p.tell(finding.Error, "descriptor-syntax", 0, "a descriptor is one JSON object")
		return false
	}
	p.at = map[string]int64{}
	sound := true
	for dec.More() {
		sound = p.member(dec, d) && sound
	}
	return sound
}

// member reads one member; false: its value is of the wrong kind.
func (p *parser) member(dec *json.Decoder, d *Descriptor) bool {
	tok, err := dec.Token()
	var value json.RawMessage
	if err == nil {
		err = dec.Decode(&value)
	}
	if err != nil && err != io.EOF { // the whole was valid JSON
		p.tell(finding.Error, "descriptor-syntax", dec.InputOffset(), err.Error())
		return false
	}
	name := fmt.Sprint(tok)
	offset := dec.InputOffset() - int64(len(value))
	p.at[name] = offset
	key, err := json.Marshal(name)
	if err != nil {
		return false
	}
	one := bytes.Join([][]byte{{'{'}, key, {':'}, value, {'}'}}, nil)
	known := json.NewDecoder(bytes.NewReader(one))
	known.DisallowUnknownFields()
	var kind *json.UnmarshalTypeError
	switch err := known.Decode(d); {
	case errors.As(err, &kind):
		want := "a string"
		if name == "route" && kind.Field == "route" {
			want = "an object of strings"
		}
		p.tell(finding.Error, "descriptor-wrong-type", offset, fmt.Sprintf("%q is a %s; it must be %s", name, kind.Value, want))
		return false
	case err != nil && name != "$schema": // that one is for editors
		p.tell(finding.Info, "descriptor-unknown-key", offset, fmt.Sprintf("unknown member %q is kept and not used", name))
	}
	return true
}
