package config

import "time"

// Speech configures how voice messages are read and answers are spoken.
type Speech struct {
	Transcribe Transcribe `json:"transcribe"`
	Speak      Speak      `json:"speak"`
}

// Transcribe is what writes down voice messages. Without a URL and a command nothing does.
type Transcribe struct {
	Voicing
	Language string `json:"language"` // of the voice messages, such as "de"; "": the service finds out
}

// Speak is what speaks answers. Without a URL and a command nothing does.
type Speak struct {
	Voicing
	Voice string `json:"voice"` // as the service calls it
}

// A Voicing is a service with the paths of OpenAI, or a program.
type Voicing struct {
	URL     string        `json:"url" check:"url"` // with its version, such as https://api.openai.com/v1
	Model   string        `json:"model"`
	KeyEnv  string        `json:"keyEnv" check:"env"` // "": the secret "speech"
	Command string        `json:"command"`            // instead of the service: reads stdin, writes stdout
	Sandbox *bool         `json:"sandbox"`            // of the command; nil: true
	Timeout time.Duration `json:"timeout" min:"1s" max:"10m"`
}

// On reports whether there is anything that can be called.
func (v Voicing) On() bool { return v.URL != "" || v.Command != "" }

// speechSecret is the id of the secret of speech services that name no other.
const speechSecret = "speech"

// Secret returns the key of a speech service; empty: it has none.
func (v Voicing) Secret(c *Config) Secret {
	if v.KeyEnv == "" {
		return c.Secret(speechSecret)
	}
	return c.SecretNamed(v.KeyEnv)
}

// speechSecrets adds the keys of speech services, and returns their addresses.
func speechSecrets(c *Config, add func(Secret)) (urls []string) {
	for _, v := range []Voicing{c.Speech.Transcribe.Voicing, c.Speech.Speak.Voicing} {
		add(v.Secret(c))
		urls = append(urls, v.URL)
	}

	return urls
}

// speechSources calls at for each secret that a speech service is set up with.
func speechSources(c *Config, given func(id string) bool, at func(id, usedBy string, envs ...string)) {
	for what, v := range map[string]Voicing{"speech.transcribe": c.Speech.Transcribe.Voicing, "speech.speak": c.Speech.Speak.Voicing} {
		switch {
		case v.KeyEnv != "":
			at(v.KeyEnv, what, v.KeyEnv)
		case given(speechSecret) && v.URL != "":
			at(speechSecret, what)
		}
	}
}

// checkSpeech reports services that are set up twice.
func (r *reader) checkSpeech(c *Config) {
	for _, v := range []struct {
		key string
		Voicing
	}{{"transcribe", c.Speech.Transcribe.Voicing}, {"speak", c.Speech.Speak.Voicing}} {
		if v.URL != "" && v.Command != "" {
			r.Bad("speech."+v.key+".command", ": found both a command and a url; remove one of them")
		}
	}
}
