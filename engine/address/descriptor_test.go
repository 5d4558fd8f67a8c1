package address

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/finding"
)

func TestGoldenDescriptors(t *testing.T) {
	for name, d := range map[string]Descriptor{
		"user":      {Type: User, Connector: "telegram", UserID: "5550001", ChannelID: "5550001", Name: "Ada & co"},
		"cron":      {Type: Cron, ID: idA},
		"heartbeat": {Type: Heartbeat},
		"subagent":  {Type: Subagent, ID: idA, ParentAgentID: idB, Name: "log-reader", Definition: "CodeSearch", CallID: "c1"},
		"permanent": {Type: Permanent, ID: idA, Name: "Ops", Description: "keeps things running",
			SystemPrompt: "You are <ops>.", WorkspaceDir: "ops"},
	} {
		path := filepath.Join("testdata", name+".golden.json")
		got, err := Encode(d)
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}

		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s (-file +now):\n%s", name, diff)
		}
		if back, found := Decode(path, want); back != d || len(found) > 0 {
			t.Errorf("%s read back: %+v, %v", name, back, found)
		}
	}
}

func TestDecodeFindings(t *testing.T) {
	tests := []struct {
		name, json string
		want       []string
	}{
		{"fine", `{"type":"heartbeat"}`, nil},
		{"syntax", "{\n \"type\": user}", []string{"descriptor-syntax 2:10"}},
		{"cut", `{"type": "us`, []string{"descriptor-syntax 1:12"}},
		{"empty", ``, []string{"descriptor-syntax 1:1"}},
		{"list", `[]`, []string{"descriptor-syntax 1:1"}},
		{"two", `{"type":"heartbeat"} {}`, []string{"descriptor-syntax 1:22"}},
		{"type", "{\n  \"type\": \"robot\"}", []string{"descriptor-invalid 2:11"}},
		{"no type", `{}`, []string{"descriptor-invalid 1:1"}},
		{"missing", `{"type":"user","connector":"telegram"}`, []string{"descriptor-invalid 1:1"}},
		{"missing two", `{"type":"user"}`, []string{"descriptor-invalid 1:1", "descriptor-invalid 1:1"}},
		{"wrong type", "{\"type\":\"user\",\n \"connector\": \"t\",\n \"channelId\": 7}", []string{"descriptor-wrong-type 3:15"}},
		{"unknown", "{\"type\":\"heartbeat\",\n \"colour\": {\"a\":[1]}}", []string{"descriptor-unknown-key 2:2"}},
		{"bad id", `{"type":"cron","id":"../x"}`, []string{"descriptor-invalid 1:21"}},
		{"bad parent", `{"type":"subagent","name":"n","id":"` + idA + `","parentAgentId":"P"}`, []string{"descriptor-invalid 1:79"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, found := Decode("d", []byte(tt.json))
			if diff := cmp.Diff(tt.want, places(found)); diff != "" {
				t.Errorf("(-want +got):\n%s\n%v", diff, found)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"type":"user","connector":"t","channelId":"c"}`))
	f.Add([]byte(`{"type":"cron","id":7,"x":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, found := Decode("d", data)
		if finding.Join(found) != nil {
			return
		}
		again, err := Encode(d)
		if err != nil {
			t.Fatalf("valid, but cannot be written: %v", err)
		}
		if back, found := Decode("d", again); back != d || len(found) > 0 {
			t.Errorf("%+v became %+v, %v", d, back, found)
		}
	})
}
