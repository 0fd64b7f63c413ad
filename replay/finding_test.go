package replay

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestInvariantsAreWrittenDown: the page has every number with its checks, in the order of the code, and no others.
func TestInvariantsAreWrittenDown(t *testing.T) {
	text, err := os.ReadFile("../docs/design/invariants.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| I") && len(cells) == 4 {
			rows[strings.TrimPrefix(cells[0], "| ")] = cells[2]
		}
	}
	if len(rows) != len(invariants) {
		t.Errorf("%d rows, %d invariants", len(rows), len(invariants))
	}
	seen := map[Code]bool{}
	for i, inv := range invariants {
		if want := fmt.Sprintf("I%d", i+1); inv.number != want {
			t.Errorf("%s stands where %s belongs", inv.number, want)
		}
		var names []string
		for _, c := range inv.codes {
			names = append(names, "`"+string(c)+"`")
			if seen[c] {
				t.Errorf("%s is a check of two invariants", c)
			}
			seen[c] = true
		}
		if got := rows[inv.number]; got != strings.Join(names, " ") {
			t.Errorf("%s: the page has the checks %s, the code %s", inv.number, got, strings.Join(names, " "))
		}
	}
	for _, c := range []Code{ProjectionMissing, ProjectionAhead, ProjectionRoom, ProjectionTicket, ProjectionHandle, ProjectionLine} {
		if !strings.Contains(string(text), "`"+string(c)+"`") {
			t.Errorf("the page lacks %s", c)
		}
	}
}
