package setup

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestFetchModels(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/models" {
			http.NotFound(w, r)
			return
		}
		if r.Header.Get("Authorization") != "" {
			t.Error("a key was sent")
		}
		w.Write([]byte(`{"models":[]}`))
	}))
	defer server.Close()
	if data, err := fetchModels(t.Context(), server.URL+"/models"); err != nil || string(data) != `{"models":[]}` {
		t.Errorf("%q, %v", data, err)
	}

	for source, want := range map[string]string{
		server.URL + "/other":         "404",
		"http://models.example/list":  "over https only",
		"ftp://models.example/list":   "over https only",
		"http://127.0.0.1:1/models":   "refused",
		t.TempDir() + "/no-such.json": "no file",
	} {
		if _, err := fetchModels(t.Context(), source); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", source, err, want)
		}
	}
}
