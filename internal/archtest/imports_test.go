package archtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// layer says what a package may import (architecture.md, "Who may import whom"). A name stands for
// the package and all below it when it ends in "/...".
type layer struct {
	name string
	// ours lists the packages of this module that it may import, beside those below itself; nil means
	// all but the ones that nobody may import.
	ours []string
	// libraries lists the modules that it may import beside the standard library; nil means all but
	// the drivers' libraries.
	libraries []string
}

var none = []string{}

// layers is read from the top: the first that names a package holds for it. A layer may also import
// what those below it are made of, since their types show in their functions.
var layers = []layer{
	{name: "engine/room", ours: none, libraries: []string{"github.com/oklog/ulid/v2"}},
	{name: "journal", ours: none, libraries: []string{"github.com/oklog/ulid/v2"}},
	{name: "access/token", ours: none, libraries: []string{"github.com/oklog/ulid/v2"}},
	{name: "access/score", ours: none, libraries: none},
	{name: "access/scope", ours: none, libraries: []string{"golang.org/x/net/idna"}},
	{name: "access/org", ours: []string{"journal"}, libraries: []string{"github.com/oklog/ulid/v2"}},
	{name: "projection", ours: []string{"engine/room", "journal"}},
	{name: "engine", ours: []string{"engine/room", "journal", "projection"}},
	{name: "replay", ours: []string{"access/org", "engine/room", "journal", "projection"}},
	{name: "httpapi/...", ours: []string{"engine", "engine/room", "journal", "projection", "replay", "access/...", "notify", "edge/connector", "web", "docs"}},
	{name: "edge/...", ours: []string{"access/token"}},
	{name: "web/...", ours: []string{"docs"}},
	{name: "docs/...", ours: none},
}

// drivers are named by cmd alone, and their libraries by themselves and by the test environment.
var drivers = []string{"journal/postgres", "projection/valkey", "notify/jobs"}

// testHelpers may be imported by tests, and by each other.
var testHelpers = []string{
	"internal/testenv/...", "internal/faultnet/...", "internal/archtest/...", "internal/mutants/...",
	"journal/journaltest/...", "projection/projectiontest/...", "notify/notifytest/...",
}

// testLibraries serve tests alone.
var testLibraries = []string{
	"testing", "net/http/httptest", "pgregory.net/rapid", "go.uber.org/goleak", "github.com/google/go-cmp",
	"github.com/chromedp/chromedp", "github.com/emersion/go-smtp", "github.com/getkin/kin-openapi", "github.com/cockroachdb/datadriven",
}

// within tells whether the package is what the pattern names.
func within(pkg, pattern string) bool {
	if prefix, all := strings.CutSuffix(pattern, "/..."); all {
		return pkg == prefix || strings.HasPrefix(pkg, prefix+"/")
	}
	return pkg == pattern
}

func withinAny(pkg string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return within(pkg, p) })
}

// belowAny tells whether an import path is one of the modules or below one of them.
func belowAny(importPath string, modules []string) bool {
	return slices.ContainsFunc(modules, func(m string) bool { return within(importPath, m+"/...") })
}

func layerOf(pkg string) (layer, bool) {
	i := slices.IndexFunc(layers, func(l layer) bool { return within(pkg, l.name) })
	if i < 0 {
		return layer{}, false
	}
	return layers[i], true
}

// refusal says why pkg may not import the path, or "".
func refusal(pkg, importPath string) string {
	helper := withinAny(pkg, testHelpers)
	if !helper && belowAny(importPath, testLibraries) {
		return "serves tests alone"
	}
	ours, isOurs := strings.CutPrefix(importPath, module+"/")
	command := within(pkg, "cmd/...")
	l, layered := layerOf(pkg)
	switch {
	case !isOurs:
		first, _, _ := strings.Cut(importPath, "/")
		library := strings.Contains(first, ".")
		if library && layered && l.libraries != nil && !belowAny(importPath, l.libraries) {
			return "belongs to no layer so low: only the standard library does"
		}
		return ""
	case withinAny(ours, testHelpers) && !helper:
		return "is a test helper"
	case within(ours, "cmd/..."):
		return "is a command"
	case within(ours, "httpapi/...") && !command && !within(pkg, "httpapi/..."):
		return "is imported by commands alone"
	case slices.Contains(drivers, ours) && !command:
		return "is a driver, which commands alone name"
	case layered && l.ours != nil && !strings.HasPrefix(ours, pkg+"/") && !within(ours, l.name) && !withinAny(ours, l.ours):
		return fmt.Sprintf("is not below %s, which may import %v", pkg, l.ours)
	}
	return ""
}

// importRule checks the imports of one file that is no test.
func importRule(s source) (findings []string) {
	if s.test() {
		return nil
	}
	for i, p := range s.imports() {
		if why := refusal(s.dir(), p); why != "" {
			findings = append(findings, fmt.Sprintf("%s: imports %s, which %s", s.at(s.file.Imports[i]), p, why))
		}
	}
	return findings
}

func TestImportsFollowTheArchitecture(t *testing.T) {
	for _, s := range tree(t) {
		report(t, importRule(s))
	}
}

func TestTheImportRuleBites(t *testing.T) {
	cases := map[string]string{
		"engine/room/x.go": `package room
import (
	"fmt"
	"github.com/oklog/ulid/v2"
	"github.com/google/uuid" // bad
	"qm/journal" // bad
)`,
		"journal/x.go": `package journal
import (
	"github.com/jackc/pgx/v5" // bad
	"qm/engine/room" // bad
	"qm/journal/postgres" // bad
)`,
		"journal/postgres/x.go": `package postgres
import (
	"github.com/jackc/pgx/v5"
	"qm/journal"
	"qm/httpapi" // bad
)`,
		"journal/journaltest/x.go": `package journaltest
import (
	"testing"
	"pgregory.net/rapid"
	"qm/journal"
	"qm/internal/faultnet"
)`,
		"projection/x.go": `package projection
import (
	"qm/engine/room"
	"qm/engine" // bad
)`,
		"engine/x.go": `package engine
import (
	"qm/engine/room"
	"qm/projection"
	"qm/projection/valkey" // bad
	"qm/access" // bad
	"qm/internal/testenv" // bad
	"testing" // bad
	"testing/synctest" // bad
)`,
		"replay/x.go": `package replay
import (
	"qm/journal"
	"qm/engine" // bad
)`,
		"httpapi/x.go": `package httpapi
import (
	"qm/access/token"
	"qm/engine"
	"qm/engine/room"
	"qm/notify"
	"qm/web"
	"qm/notify/webhook" // bad
	"qm/edge" // bad
	"qm/journal/postgres" // bad
)`,
		"edge/connector/x.go": `package connector
import (
	"qm/access/token"
	"qm/edge"
	"qm/access" // bad
	"qm/engine/room" // bad
)`,
		"notify/email/x.go": `package email
import (
	"qm/notify"
	"qm/cmd/qm" // bad
	"qm/httpapi" // bad
)`,
		"cmd/qm/app.go": `package main
import (
	"qm/httpapi"
	"qm/journal/postgres"
	"qm/internal/faultnet" // bad
)`,
		"cmd/qm/app_test.go": `package main
import (
	"testing"
	"qm/internal/faultnet"
)`,
	}
	for name, text := range cases {
		s := parse(t, name, text)
		expect(t, s, importRule(s))
	}
}
