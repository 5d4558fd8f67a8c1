package mcp

import (
	"encoding/json"
	"testing"
)

// FuzzQuestions: a file of questions that someone wrote is used whole or not at all, and each
// question can be told and shown.
func FuzzQuestions(f *testing.F) {
	for _, seed := range []string{
		`{"questions":[{"id":"0123456789ab","agent":"x","server":"a","tool":"b","arguments":{},"message":"Name?",` +
			`"schema":{"type":"object"}}]}`,
		`{"questions":[{"id":"1","agent":"x","server":"a","tool":"b","arguments":null,"message":"\u202e","url":"https://h/?a=1"}]}`,
		`{"questions":[{}]}`, `{"questions":null}`, `[]`, `{`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		all, found := parseQuestions("/w/.daycare/"+QuestionsName, content)
		for _, q := range all.Questions {
			if q.told() == "" || len(q.identity()) != 12 {
				t.Errorf("%+v", q)
			}
			if q.ID == "" && len(found) == 0 {
				t.Errorf("a question without an id is used: %+v", q)
			}
		}
	})
}

// FuzzSchema: what models and users are shown of a server's schema is JSON whatever it sent.
func FuzzSchema(f *testing.F) {
	for _, seed := range []string{`{"type":"object"}`, `{"type":"object","properties":{"a":{"description":"x\u200b","default":[1]}}}`,
		`{"$defs":{"a":{"$ref":"#/$defs/a"}},"items":[{},[]]}`, `{"properties":7}`, `[1]`, `null`, `{`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, schema []byte) {
		d := Define("x", "", schema)
		if shown := d.shown(); json.Valid(schema) && !json.Valid(shown) {
			t.Errorf("%s is shown as %s", schema, shown)
		}
		if again := Define("x", "", schema); again.SHA256 != d.SHA256 {
			t.Error("the hash is another each time")
		}
	})
}
