package speech

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const key = "canary_key_of/speech"

// server plays OpenAI's paths; fault, if any, answers instead.
func server(t *testing.T, fault http.HandlerFunc) Service {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case fault != nil:
			fault(w, r)
		case r.Header.Get("Authorization") != "Bearer "+key:
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/v1/audio/transcriptions":
			f, head, err := r.FormFile("file")
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			sound, _ := io.ReadAll(f)
			said := strings.Join([]string{" " + head.Filename, string(sound), r.FormValue("model"), r.FormValue("language")}, "|")
			_ = json.NewEncoder(w).Encode(map[string]string{"text": said + " "})
		case r.URL.Path == "/v1/audio/speech":
			var in map[string]string
			_ = json.NewDecoder(r.Body).Decode(&in)
			_, _ = io.WriteString(w, "sound of "+in["input"]+" by "+in["voice"]+" as "+in["response_format"])
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(s.Close)

	return Service{URL: s.URL + "/v1", Model: "whisper-1", Key: key, Timeout: 10 * time.Second}
}

func TestSpeech(t *testing.T) {
	s := server(t, nil)
	if got, err := s.Transcribe(t.Context(), "voice.ogg", []byte("OggS"), "de"); got != "voice.ogg|OggS|whisper-1|de" || err != nil {
		t.Errorf("transcribed %q, %v", got, err)
	}
	if got, err := s.Speak(t.Context(), "hello", "alloy"); string(got) != "sound of hello by alloy as opus" || err != nil {
		t.Errorf("spoke %q, %v", got, err)
	}
}

// What is wrong with a server is said, without the key.
func TestFaults(t *testing.T) {
	for name, tt := range map[string]struct {
		fault http.HandlerFunc
		want  string
	}{
		"refused": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":{"message":"bad key `+key+`"}}`)
		}, "401 Unauthorized: bad key [redacted]"},
		"broken": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, strings.Repeat("x", 10_000), http.StatusInternalServerError)
		}, "500 Internal Server Error: " + strings.Repeat("x", maxReason) + "…"},
		"another format": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, "format of OpenAI"},
		"cut off":        {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "transcription"},
	} {
		_, err := server(t, tt.fault).Transcribe(t.Context(), "a.ogg", nil, "")
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	if _, err := server(t, func(http.ResponseWriter, *http.Request) {}).Speak(t.Context(), "x", ""); err == nil {
		t.Error("an empty sound was taken")
	}
}
