//go:build !race

package fetch

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

// What starts no goroutine: the race detector has nothing to find there and makes it take
// ten times as long. .ci/run runs these tests without it.

// Hostile pages must cost neither the stack nor minutes, and show no code and no way to run any.
func TestHostilePages(t *testing.T) {
	base, _ := url.Parse("https://example.com/")
	for name, p := range map[string]string{
		"deep": strings.Repeat("<div>", 500_000), "inline": strings.Repeat("<b>x", 100_000), "lists": strings.Repeat("<ul><li>", 100_000),
		"attributes": "<a " + strings.Repeat("x=1 ", 500_000), "open": strings.Repeat("<", 1<<20),
		"quotes": strings.Repeat("<blockquote>x", 50_000), "cells": "<table>" + strings.Repeat("<tr><td>x", 100_000),
		"wide":  "<table><tr><td>x<td colspan=1000000000 rowspan=1000000000>y</table>",
		"large": strings.Repeat("<p>one paragraph of many</p>", 10<<20/27), "text": strings.Repeat("a_b*c ", 10<<20/6),
		"links": strings.Repeat("<a href=x>y ", 100_000), "formatting": strings.Repeat("<p><b><i><a href=x>x", 50_000),
	} {
		p = "<p>first<script>alert(1)</script><style>p{}</style><a href=javascript:run()>click</a>" + p
		start := time.Now()
		_, text := markdown(p, base)
		t.Logf("%s: %d bytes in %v", name, len(p), time.Since(start)) // with a square in it, the test would run into its time limit
		if !strings.HasPrefix(text, "first") || !strings.Contains(text, "click") {
			t.Errorf("%s: %.100q", name, text)
		}
		if strings.Contains(text, "alert") || strings.Contains(text, "p{}") || strings.Contains(text, "javascript") {
			t.Errorf("%s shows code: %.100q", name, text)
		}
	}
}
