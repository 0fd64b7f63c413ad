package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"qm/docs"
	"qm/internal/testenv"
)

// TestTheLinterFindsNothing: what tools of others think of the document. That it is true is for httpapi's tests.
func TestTheLinterFindsNothing(t *testing.T) {
	said, err := lint(t, "openapi.json")
	if err != nil {
		t.Errorf("the linter: %v\n%s", err, said)
	}
}

// TestTheLinterFindsWhatIsWrong: a linter that finds nothing in anything proves nothing.
func TestTheLinterFindsWhatIsWrong(t *testing.T) {
	broken := strings.Replace(string(docs.OpenAPI), `"operationId": "status"`, `"operationId": "join"`, 1)
	file := filepath.Join(t.TempDir(), "openapi.json")
	if err := os.WriteFile(file, []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := lint(t, file); err == nil || !strings.Contains(said, "operation-operationId-unique") {
		t.Errorf("two operations of one name: %v\n%s", err, said)
	}
}

func lint(t *testing.T, file string) (said string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), testenv.Node(t), testenv.NPM(t, "@redocly/cli/bin/cli.js"), "lint", file, "--extends=recommended-strict", "--format=stylish")
	cmd.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "CI=true")
	out, err := cmd.CombinedOutput()
	return string(out), err
}
