package workspace

import "testing"

func TestPathsAreStoredRelative(t *testing.T) {
	for _, tt := range []struct{ path, stored, resolved string }{
		{"/old/ws", ".", "/new"}, {"/old/ws/docs/", "docs", "/new/docs"}, {"/old/ws/..hidden", "..hidden", "/new/..hidden"},
		{"/old/wsx", "/old/wsx", "/old/wsx"}, {"/old", "/old", "/old"}, {"/srv/a", "/srv/a", "/srv/a"}, {"", "", ""},
	} {
		got := Store("/old/ws", tt.path)
		if back := Resolve("/new", got); got != tt.stored || back != tt.resolved {
			t.Errorf("%q is stored as %q and resolved to %q, want %q and %q", tt.path, got, back, tt.stored, tt.resolved)
		}
	}
	for tag, want := range map[string]string{"@read:/old/ws/docs": "@read:docs", "@write:/old/ws": "@write:.", "@read:/srv": "@read:/srv",
		"@exec:/old/ws/build": "@exec:/old/ws/build", "@web:a.example": "@web:a.example", "@web": "@web"} {
		if got := StoreTag("/old/ws", tag); got != want {
			t.Errorf("%q is stored as %q, want %q", tag, got, want)
		}
	}
	for stored, want := range map[string]string{"@read:docs": "@read:/new/docs", "@write:.": "@write:/new",
		"@read:/srv": "@read:/srv", "@exec:docs": "@exec:docs"} {
		if got := ResolveTag("/new", stored); got != want {
			t.Errorf("%q is resolved to %q, want %q", stored, got, want)
		}
	}
}

// What older versions wrote names the place where the workspace lay then.
func TestAttachmentsAreThoseOfThisWorkspace(t *testing.T) {
	for stored, want := range map[string]string{
		".daycare/files/a__x.txt": "/new/.daycare/files/a__x.txt", "/old/ws/.daycare/files/a__x.txt": "/new/.daycare/files/a__x.txt",
		"/srv/x.txt": "/srv/x.txt",
	} {
		if got := ResolveFile("/new", stored); got != want {
			t.Errorf("%q is resolved to %q, want %q", stored, got, want)
		}
		if got := ResolveFile("", stored); got != stored {
			t.Errorf("%q is changed to %q, and no workspace is known", stored, got)
		}
	}
}

func TestOfAnAgentsFolder(t *testing.T) {
	for _, dir := range []string{"/ws/.daycare/agents/a", "/ws/.daycare/trash/a"} {
		if got := Of(dir); got != "/ws" {
			t.Errorf("the workspace of %s is %s", dir, got)
		}
	}
}
