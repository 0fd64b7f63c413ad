package web

import (
	"fmt"
	"path"
	"strings"
	"testing"
	"testing/fstest"
)

func site(files map[string]string) fstest.MapFS {
	dir := fstest.MapFS{}
	for name, text := range files {
		dir[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return dir
}

func asIs(_ string, body []byte) ([]byte, error) { return body, nil }

// A module names what it imports by the address at which that is served, and
// its own address changes with theirs.
func TestImportsLeadToHashedModules(t *testing.T) {
	source := map[string]string{
		"a.js": `import { x } from "./b.js";
import {
  y,
} from './c.js';
export * from "./b.js";
const later = () => import("./c.js");
const text = "./b.js stays";
import "./pages/d.js";`,
		"b.js":       `import "./c.js";`,
		"pages/d.js": `import "../c.js";`,
		"c.js":       "export const y = 1;",
		"look.css":   `@import "./b.js";`,
		"no.html":    "",
	}
	names, paths := mustLoad(site(source), asIs)
	if len(names) != 5 || len(paths) != 5 {
		t.Fatalf("%d names, %d paths", len(names), len(paths))
	}
	b, c, d := "./"+path.Base(names["b.js"].path), "./"+path.Base(names["c.js"].path), "./"+path.Base(names["pages/d.js"].path)
	if d[:10] != "./pages-d-" {
		t.Errorf("what lies in a directory is served beside the others: %s", d)
	}
	if got, want := string(names["pages/d.js"].body), fmt.Sprintf("import %q;", c); got != want {
		t.Errorf("pages/d.js is %s, want %s", got, want)
	}
	want := fmt.Sprintf(`import { x } from "%s";
import {
  y,
} from '%s';
export * from "%s";
const later = () => import("%s");
const text = "./b.js stays";
import "%s";`, b, c, b, c, d)
	if got := string(names["a.js"].body); got != want {
		t.Errorf("a.js is\n%s\nwant\n%s", got, want)
	}
	if got := string(names["look.css"].body); got != source["look.css"] {
		t.Errorf("a style sheet was rewritten: %s", got)
	}

	source["c.js"] = "export const y = 2;"
	again, _ := mustLoad(site(source), asIs)
	for _, name := range []string{"a.js", "b.js", "c.js", "pages/d.js"} {
		if again[name].path == names[name].path {
			t.Errorf("%s is still at %s after c.js changed", name, names[name].path)
		}
	}
}

func TestABuildOfBrokenImportsDoesNotStart(t *testing.T) {
	for _, c := range []struct {
		files map[string]string
		says  string
	}{
		{map[string]string{"a.js": `import "./b.js"`, "b.js": `import "./c.js"`, "c.js": `import "./a.js"`}, "in a circle: a.js → b.js → c.js → a.js"},
		{map[string]string{"a.js": `import "./a.js"`}, "in a circle: a.js → a.js"},
		{map[string]string{"a.js": `import "./gone.js"`}, `a.js imports "./gone.js": read embedded file: open gone.js`},
		{map[string]string{"a.js": `import "./a.css"`, "a.css": ""}, `a.js imports "./a.css", which is no module`},
	} {
		func() {
			defer func() {
				if said := fmt.Sprint(recover()); !strings.Contains(said, c.says) {
					t.Errorf("%v: %s, want %s", c.files, said, c.says)
				}
			}()
			mustLoad(site(c.files), asIs)
		}()
	}
}

// What the pages import is there: nothing relative is left that no hash names.
func TestEveryModuleOfThisBuildIsServed(t *testing.T) {
	for name, a := range byName {
		for _, m := range imported.FindAllStringSubmatch(string(a.body), -1) {
			if _, _, ok := Asset("/assets/" + strings.TrimPrefix(m[3], "./")); !ok {
				t.Errorf("%s imports %s, which is not served", name, m[3])
			}
		}
	}
}
