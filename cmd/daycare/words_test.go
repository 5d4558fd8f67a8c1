//go:build !race

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"daycare/engine/lazyregexp"
)

// plainWords are words that docs, help and settings must not use, with the words to use instead:
// those of docs/glossary.md, or plain ones.
var plainWords = map[string]string{
	`approval asks?`:                   "approval request",
	`(are|is) told (of|that|to|about)`: "gets, is notified, receives",
	`asks to be let in`:                "requests access",
	`counts? from`:                     "applies from, takes effect",
	`fate`:                             "result",
	`hears? of`:                        "is notified",
	`in force`:                         "active",
	`lets? (\w+ )?in\b`:                "grants access",
	`letter slot`:                      "drop folder",
	`may not`:                          "cannot, must not",
	`nobody may`:                       "nobody can, must not",
	`of yours`:                         "your",
	`rights`:                           "permissions",
	`somebody`:                         "someone, a user",
	`switched (on|off)`:                "enabled, disabled",
	`what came of`:                     "the result of",
	`whoever`:                          "anyone who, the user who",
	`wait(s|ing)? for ever`:            "never ends",
}

// TestNoReplacedWords holds texts that users read to the words of the glossary. docs/commands.md
// contains the help of every command. Examples in docs are output of programs and models.
func TestNoReplacedWords(t *testing.T) {
	t.Parallel()
	files := []string{"../../README.md", "../../settings.example.yaml"}
	err := filepath.WalkDir("../../docs", func(path string, _ os.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	rules := make(map[*regexp.Regexp]string, len(plainWords))
	for words, use := range plainWords {
		rules[regexp.MustCompile(`(?i)\b(`+words+`)\b`)] = use
	}

	lines := 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}

		example := false
		for n, line := range strings.Split(string(content), "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				example = !example
			}
			if example && filepath.Base(file) != "commands.md" {
				continue
			}
			lines++

			for rule, use := range rules {
				if word := rule.FindString(withoutCode.ReplaceAllString(line, "")); word != "" {
					t.Errorf("%s:%d: %q: use: %s", file, n+1, word, use)
				}
			}
		}
	}

	t.Logf("%d lines in %d files", lines, len(files))
}

// withoutCode matches code in a line of Markdown.
var withoutCode = lazyregexp.New("`[^`]*`")
