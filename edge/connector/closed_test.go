package connector

import (
	"bytes"
	"encoding/json"
	"flag"
	"html/template"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write closed.html again")

// closedPage stands alone: no file beside it, no words but the waiting page's own. Without script it speaks English.
var closedPage = template.Must(template.New("closed").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<meta http-equiv="refresh" content="5">
<title>{{(index . 0).Head}}</title>
<style>
:root{color-scheme:light dark}
body{margin:0;min-height:100vh;display:grid;place-items:center;font:1.0625rem/1.5 system-ui,sans-serif;text-align:center;background:Canvas;color:CanvasText}
main{padding:1.5rem;max-width:32rem}
h1{font-size:1.5rem;line-height:1.25;margin:0 0 .5rem}
p{margin:0}
</style>
</head>
<body>
<main>
{{range $i, $w := .}}<div lang="{{.Tag}}" dir="{{.Dir}}"{{if $i}} hidden{{end}}><h1>{{.Head}}</h1><p>{{.Text}}</p></div>
{{end}}</main>
<script>
(function () {
  var all = document.querySelectorAll("main > div"), wishes = navigator.languages || [navigator.language || "en"];
  for (var i = 0; i < wishes.length; i++) {
    for (var j = 0; j < all.length; j++) {
      if (wishes[i].split("-")[0].toLowerCase() !== all[j].lang.split("-")[0]) continue;
      all[0].hidden = true;
      all[j].hidden = false;
      document.documentElement.lang = all[j].lang;
      document.title = all[j].firstChild.textContent;
      return;
    }
  }
})();
</script>
</body>
</html>
`))

type sentences struct{ Tag, Dir, Head, Text string }

// TestClosedPageSaysWhatTheWaitingPageSays: the page is made of the waiting page's own sentences, in all its languages.
func TestClosedPageSaysWhatTheWaitingPageSays(t *testing.T) {
	paths, err := filepath.Glob("../../web/locales/*.json")
	if err != nil || len(paths) < 16 {
		t.Fatalf("%d locales, %v", len(paths), err)
	}
	var all []sentences
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var words map[string]string
		if err := json.Unmarshal(raw, &words); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		s := sentences{strings.TrimSuffix(filepath.Base(path), ".json"), words["dir"], words["backend.h"], words["backend.p"]}
		if s.Dir == "" {
			s.Dir = "ltr"
		}
		if s.Head == "" || s.Text == "" {
			t.Errorf("%s has no sentence for a queue that does not answer", s.Tag)
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b sentences) int {
		if (a.Tag == "en") != (b.Tag == "en") {
			if a.Tag == "en" {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Tag, b.Tag)
	})
	var out bytes.Buffer
	if err := closedPage.Execute(&out, all); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("closed.html", out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(out.Bytes(), Closed) {
		t.Error("closed.html is not what the locales make of it: run make generate")
	}
}
