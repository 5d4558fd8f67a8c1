//go:build !race

package browser

import (
	"os"
	"strings"
	"testing"
)

func TestLook(t *testing.T) {
	w := newWorkspace(t, demoScript, demoSettings)
	w.furnish()
	w.start()
	w.live()
	p := w.visit()
	p.expect(".")
	dir := "/tmp/views/shots"
	os.MkdirAll(dir, 0o755)
	for _, v := range views {
		p.size(1440, 900)
		p.scheme("light")
		p.goTo(v.path)
		os.WriteFile(dir+"/"+v.name+".png", p.screenshot(), 0o644)
		if strings.Contains(os.Getenv("LOOK"), "all") {
			p.scheme("dark")
			os.WriteFile(dir+"/"+v.name+"-dark.png", p.screenshot(), 0o644)
			p.scheme("light")
			p.size(390, 844)
			os.WriteFile(dir+"/"+v.name+"-phone.png", p.screenshot(), 0o644)
		}
	}
}
