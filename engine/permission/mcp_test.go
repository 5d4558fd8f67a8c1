package permission

import (
	"strings"
	"testing"
)

func TestRightsToToolsOfMcpServers(t *testing.T) {
	for tag, want := range map[string]string{
		"@mcp:everything/echo": "@mcp:everything/echo", "@mcp:everything": "@mcp:everything",
		"@mcp: files/read_file ": "@mcp:files/read_file", "@mcp:a/b/c": "@mcp:a/b/c",
	} {
		if a, err := Parse(tag); err != nil || a.Tag() != want {
			t.Errorf("Parse(%q) = %v, %v; want %s", tag, a, err, want)
		}
	}
	for _, tag := range []string{"@mcp", "@mcp:", "@mcp:/x", "@mcp:a/", "@mcp:*/x", "@mcp:a b/x", "@mcp:a/" + strings.Repeat("x", 129)} {
		if a, err := Parse(tag); err == nil {
			t.Errorf("Parse(%q) = %v; it must be refused", tag, a)
		}
	}

	set, err := Default("/w").Grant(Grant{Tag: "@mcp:files/read_file"})
	if err != nil {
		t.Fatal(err)
	}
	read, write := Mcp{"files", "read_file"}, Mcp{"files", "write_file"}
	if !set.Allows(read) || set.Allows(write) || set.Allows(Mcp{Server: "files"}) || set.Allows(Mcp{"files2", "read_file"}) {
		t.Errorf("a right to one tool must cover it alone: %v", set.MCP)
	}
	all, _ := set.Grant(Grant{Tag: "@mcp:files"})
	if !all.Allows(write) || all.Allows(Mcp{"files2", "read_file"}) {
		t.Errorf("a right to a server must cover its tools alone: %v", all.MCP)
	}
	if less, err := all.Revoke("@mcp:files"); err != nil || less.Allows(write) || !less.Allows(read) {
		t.Errorf("after revoking the server: %v, %v", less.MCP, err)
	}
	if child := all.Within(set); !child.Allows(read) || child.Allows(write) {
		t.Errorf("a child must have at most its parent's rights, it has %v", child.MCP)
	}
	if got := Diff(set, all); len(got) != 1 || got[0] != "+@mcp:files" {
		t.Errorf("Diff = %q", got)
	}
	if got := all.Rights(); len(got) != 3 || got[2].Tag() != "@mcp:files" {
		t.Errorf("Rights = %v", got)
	}
}

// Every right of a set is listed, and is one that the set allows.
func TestRights(t *testing.T) {
	set := Set{WorkingDir: "/w", WriteDirs: []string{"/out"}, ReadDirs: []string{"/in"}, Web: true, Hosts: []string{"a.org"},
		Lan: []string{"nas.home:8080"}, Exec: []string{"git"}, MCP: []string{"files"}}
	var tags []string
	for _, right := range set.Rights() {
		if tags = append(tags, right.Tag()); !set.Allows(right) {
			t.Errorf("%s is listed, and not allowed", right.Tag())
		}
	}
	want := "@write:/w @write:/out @read:/in @web @web:a.org @lan:nas.home:8080 @exec:git @mcp:files"
	if got := strings.Join(tags, " "); got != want {
		t.Errorf("listed are %s, want %s", got, want)
	}
}

func TestTheCardOfAnMcpCallShowsAllOfItAndItsAnswers(t *testing.T) {
	r := Request{Tag: "@mcp:files/write", Prefix: "@mcp:files/write", Reason: "call a tool of the MCP server files",
		Detail: Detail{Call: "files/write\npath: a\u202eb"}}
	if card := r.Card(); !strings.Contains(card, "    files/write\n    path: a[U+202E]b\n") {
		t.Errorf("card:\n%s", card)
	}
	var texts []string
	for _, c := range r.Choices() {
		texts = append(texts, c.Decision+": "+c.Text)
	}
	want := "once: Once|always: Always this exact call|prefix: Always `files/write`, whatever its arguments|deny: Deny"
	if got := strings.Join(texts, "|"); got != want {
		t.Errorf("choices %q, want %q", got, want)
	}
	if general, err := General(r.Tag, ""); err != nil || general.SHA256("a") == r.SHA256("a") || !general.general() {
		t.Errorf("a request for the right as such must differ from one call: %+v, %v", general, err)
	}
}
