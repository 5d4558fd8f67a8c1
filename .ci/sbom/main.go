// Command sbom prints what a Go program is made of, as CycloneDX JSON: the modules that the
// program itself names, with the hashes that go.sum knows. It reads the program and nothing
// else, so the same program gives the same bytes on any machine; generators that name their
// own build or the time do not.
//
//	go run ./.ci/sbom VERSION PROGRAM
package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
)

// The parts of a bill of materials, as https://cyclonedx.org/docs/1.6/json names them.
type (
	bill struct {
		Format       string       `json:"bomFormat"`
		Spec         string       `json:"specVersion"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Component component `json:"component"`
	}
	component struct {
		Ref        string     `json:"bom-ref"`
		Type       string     `json:"type"`
		Name       string     `json:"name"`
		Version    string     `json:"version"`
		PURL       string     `json:"purl"`
		Hashes     []hash     `json:"hashes,omitempty"`
		Properties []property `json:"properties,omitempty"`
	}
	hash struct {
		Alg     string `json:"alg"`
		Content string `json:"content"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn"`
	}
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom VERSION PROGRAM")
		os.Exit(2)
	}
	info, err := buildinfo.ReadFile(os.Args[2])
	if err == nil {
		out := json.NewEncoder(os.Stdout)
		out.SetIndent("", "  ")
		out.SetEscapeHTML(false)
		err = out.Encode(billOf(info, os.Args[1]))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// billOf lists the modules of a program, and the standard library.
func billOf(info *debug.BuildInfo, version string) bill {
	program := module(info.Main.Path, version, "")
	program.Type = "application"
	for _, s := range info.Settings {
		if slices.Contains([]string{"GOOS", "GOARCH", "CGO_ENABLED", "-trimpath"}, s.Key) {
			program.Properties = append(program.Properties, property{"go:" + s.Key, s.Value})
		}
	}

	parts := []component{module("std", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		parts = append(parts, module(m.Path, m.Version, m.Sum))
	}

	slices.SortFunc(parts, func(a, b component) int { return strings.Compare(a.Ref, b.Ref) })
	uses := dependency{Ref: program.Ref}
	for _, p := range parts {
		uses.DependsOn = append(uses.DependsOn, p.Ref)
	}

	return bill{"CycloneDX", "1.6", 1, metadata{program}, parts, []dependency{uses}}
}

// module is a component; sum is as in go.sum.
func module(path, version, sum string) component {
	purl := "pkg:golang/" + path + "@" + version
	c := component{Ref: purl, Type: "library", Name: path, Version: version, PURL: purl}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:"))
	if err == nil && len(raw) > 0 {
		c.Hashes = []hash{{"SHA-256", hex.EncodeToString(raw)}}
	}

	return c
}
