// Package speech calls services that write down what is said in voice messages, and that speak
// texts: OpenAI's and every server with its paths, such as the one of whisper.cpp.
package speech

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"strings"
	"time"

	"daycare/connectors/chat"
)

// A Service is one server.
type Service struct {
	URL     string // with its version: https://api.openai.com/v1
	Model   string // "": the server has one
	Key     string // "": it wants none
	Timeout time.Duration
}

// Transcribe returns what is said in a recording. language is a hint such as "de"; "": any.
func (s Service) Transcribe(ctx context.Context, name string, sound []byte, language string) (string, error) {
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile("file", name)
	if err == nil {
		_, err = part.Write(sound)
	}
	for _, f := range [][2]string{{"model", s.Model}, {"language", language}, {"response_format", "json"}} {
		if err == nil && f[1] != "" {
			err = w.WriteField(f[0], f[1])
		}
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return "", fmt.Errorf("encode recording: %w", err)
	}

	body, err := s.call(ctx, chat.Call{Name: "transcription", Path: "/audio/transcriptions", Media: w.FormDataContentType(), Body: &form})
	if err != nil {
		return "", err
	}
	var said struct {
		Text *string `json:"text"`
	}
	if json.Unmarshal(body, &said) != nil || said.Text == nil {
		return "", errors.New("the transcription server does not answer in the format of OpenAI")
	}

	return strings.TrimSpace(*said.Text), nil
}

// Speak returns a text as sound, in Ogg with Opus.
func (s Service) Speak(ctx context.Context, text, voice string) ([]byte, error) {
	body, err := json.Marshal(map[string]string{"model": s.Model, "input": text, "voice": voice, "response_format": "opus"})
	if err != nil {
		return nil, fmt.Errorf("encode text: %w", err)
	}
	sound, err := s.call(ctx, chat.Call{Name: "speech", Path: "/audio/speech", Media: "application/json", Body: bytes.NewReader(body)})
	if err == nil && len(sound) == 0 {
		err = errors.New("the speech server returned nothing")
	}

	return sound, err
}

func (s Service) call(ctx context.Context, c chat.Call) ([]byte, error) {
	client := chat.NewClient(s.URL, s.Key)
	defer client.HTTP.CloseIdleConnections()
	c.Bearer, c.Within = s.Key, s.Timeout
	a, err := client.Do(ctx, c)
	if err != nil {
		return nil, err
	}
	if a.Status != http.StatusOK {
		return nil, fmt.Errorf("%s: %d %s: %s", c.Name, a.Status, http.StatusText(a.Status), reason(client.Redact(string(a.Body))))
	}

	return a.Body, nil
}

// reason is what a server said of its refusal, shortened.
func reason(body string) string {
	var no struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal([]byte(body), &no) == nil && no.Error.Message != "" {
		body = no.Error.Message
	}
	if r := []rune(strings.Join(strings.Fields(body), " ")); len(r) > maxReason {
		return string(r[:maxReason]) + "…"
	} else {
		return string(r)
	}
}

const maxReason = 200 // characters
