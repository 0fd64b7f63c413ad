package testenv

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Each part answers by its own name, so that a wrong program of the same name does not pass for it.
func TestProgramsAreWhatTheyAreCalled(t *testing.T) {
	for _, p := range []struct {
		path string
		args []string
		says string
	}{
		{Nginx(t), []string{"-v"}, "nginx"},
		{Caddy(t), []string{"version"}, "2."},
		{Node(t), []string{"--version"}, "v"},
		{PHP(t), []string{"--version"}, "PHP"},
		{Promtool(t), []string{"--version"}, "promtool"},
	} {
		out, err := exec.Command(p.path, p.args...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), p.says) {
			t.Errorf("%s %v: %q, %v; want something with %q", p.path, p.args, out, err, p.says)
		}
	}
	if !strings.Contains(Axe(t), "axe") {
		t.Error("axe-core's source does not name itself")
	}
	if info, err := os.Stat(NPM(t, "miniflare")); err != nil || !info.IsDir() {
		t.Errorf("miniflare: %v", err)
	}
}
