package connector_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"qm/edge/connector"
	"qm/internal/testenv"
)

// gtmTemplate is the sections of the template, as Tag Manager imports it.
func gtmTemplate(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("gtm/template.tpl")
	if err != nil {
		t.Fatal(err)
	}
	heads := regexp.MustCompile(`(?m)^___([A-Z_]+)___$`).FindAllSubmatchIndex(text, -1)
	sections := map[string]string{}
	var order []string
	for i, h := range heads {
		end := len(text)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		name := string(text[h[2]:h[3]])
		order = append(order, name)
		sections[name] = strings.TrimSpace(string(text[h[1]:end]))
	}
	want := []string{"INFO", "TEMPLATE_PARAMETERS", "SANDBOXED_JS_FOR_WEB_TEMPLATE", "WEB_PERMISSIONS", "TESTS", "NOTES"}
	if !slices.Equal(order, want) {
		t.Fatalf("the sections are %v, not %v", order, want)
	}
	return sections
}

// The template is what Tag Manager's editor takes: its sections, a tag for web containers, fields that the code reads and no others,
// and exactly the permissions that the code's functions need.
func TestTheGTMTemplateIsWhole(t *testing.T) {
	s := gtmTemplate(t)
	var info struct {
		Type              string
		DisplayName       string
		ContainerContexts []string
	}
	if err := json.Unmarshal([]byte(s["INFO"]), &info); err != nil {
		t.Fatal(err)
	}
	if info.Type != "TAG" || info.DisplayName == "" || !slices.Equal(info.ContainerContexts, []string{"WEB"}) {
		t.Errorf("INFO is %+v", info)
	}
	var fields []struct {
		Type, Name, DefaultValue string
		ValueValidators          []struct {
			Type string
			Args []string
		}
	}
	loose := regexp.MustCompile(`"defaultValue": (true|false)`).ReplaceAllString(s["TEMPLATE_PARAMETERS"], `"defaultValue": "$1"`)
	if err := json.Unmarshal([]byte(loose), &fields); err != nil {
		t.Fatal(err)
	}
	code := s["SANDBOXED_JS_FOR_WEB_TEMPLATE"]
	names := []string{"gtmOnSuccess", "gtmOnFailure"}
	samples := map[string][2][]string{
		"server": {{"https://queue.example.com", "https://q.example:8443", "https://shop.example/__qm"}, {"http://queue.example", "https://q.example/?a", "queue.example", "https://q.example/#x"}},
		"room":   {{"abc", "shop-2026"}, {"ab", "-abc", "abc-", "Shop", "a b c"}},
	}
	for _, f := range fields {
		names = append(names, f.Name)
		for _, v := range f.ValueValidators {
			if v.Type != "REGEX" {
				continue
			}
			shape := regexp.MustCompile(v.Args[0])
			for _, good := range samples[f.Name][0] {
				if !shape.MatchString(good) {
					t.Errorf("%s refuses %q", f.Name, good)
				}
			}
			for _, bad := range samples[f.Name][1] {
				if shape.MatchString(bad) {
					t.Errorf("%s takes %q", f.Name, bad)
				}
			}
		}
	}
	read := map[string]bool{}
	for _, m := range regexp.MustCompile(`\bdata\.(\w+)`).FindAllStringSubmatch(code, -1) {
		read[m[1]] = true
		if !slices.Contains(names, m[1]) {
			t.Errorf("the code reads data.%s, which no field gives", m[1])
		}
	}
	for _, f := range fields {
		if !read[f.Name] {
			t.Errorf("nothing reads the field %s", f.Name)
		}
	}
	if m := regexp.MustCompile(`\b(new|this|window|document|setTimeout|RegExp|class|async)\b|=> *\{[^}]*\bawait\b`).FindString(regexp.MustCompile(`(?m)//.*$|'[^']*'`).ReplaceAllString(code, "")); m != "" {
		t.Errorf("the code says %q, which the sandbox has not", m)
	}

	needs := map[string]string{"injectScript": "inject_script", "sendPixel": "send_pixel", "getUrl": "get_url", "templateStorage": "access_template_storage", "encodeUriComponent": "", "makeString": ""}
	var want, have []string
	for _, m := range regexp.MustCompile(`require\('(\w+)'\)`).FindAllStringSubmatch(code, -1) {
		p, known := needs[m[1]]
		if !known {
			t.Errorf("the code requires %s", m[1])
		}
		if p != "" {
			want = append(want, p)
		}
	}
	var permissions []struct {
		Instance struct {
			Key struct{ PublicID, VersionID string }
		}
	}
	if err := json.Unmarshal([]byte(s["WEB_PERMISSIONS"]), &permissions); err != nil {
		t.Fatal(err)
	}
	for _, p := range permissions {
		have = append(have, p.Instance.Key.PublicID)
		if p.Instance.Key.VersionID != "1" {
			t.Errorf("%s is of version %q", p.Instance.Key.PublicID, p.Instance.Key.VersionID)
		}
	}
	slices.Sort(want)
	slices.Sort(have)
	if !slices.Equal(want, have) {
		t.Errorf("the permissions are %v, the code needs %v", have, want)
	}
	m, ok := connector.Named("gtm")
	if !ok || !strings.Contains(code, "const version = '"+m.Version+"';") {
		t.Error("the code names another version than the registry")
	}
}

// What the template does in Tag Manager's sandbox: it loads the script with the settings in its address, then checks the installation,
// once, and says which of the two failed by the tag's own status.
//
// Proves: connectors
func TestTheGTMTemplateRuns(t *testing.T) {
	s := gtmTemplate(t)
	m, _ := connector.Named("gtm")
	script := func(query string) string { return "injectScript https://queue.example/snippet/qm.js?" + query }
	check := "sendPixel https://queue.example/api/v1/verify.gif?roomId=shop&origin=" + url.QueryEscape("https://shop.example:8443") + "&connector=gtm&version=" + m.Version
	type object = map[string]any
	for _, c := range []struct {
		name   string
		data   object
		fails  []string
		stored []string
		want   []string
	}{
		{"as the fields come", object{"server": "https://queue.example", "room": "shop", "fail": "closed", "timeout": "2000", "hide": false, "checkIn": true},
			nil, nil, []string{script("room=shop&fail=closed&timeout=2000"), check, "success "}},
		{"everything set", object{"server": " https://queue.example// ", "room": "shop", "fail": "open", "timeout": 500, "hide": true},
			nil, nil, []string{script("room=shop&fail=open&timeout=500&hide=1"), "success "}},
		{"a path, and what a variable may hold", object{"server": "https://queue.example/__qm", "room": "a&b=c", "fail": "?"},
			nil, nil, []string{"injectScript https://queue.example/__qm/snippet/qm.js?room=a%26b%3Dc&fail=closed", "success "}},
		{"checked before on this page", object{"server": "https://queue.example", "room": "shop", "checkIn": true},
			nil, []string{"qm:https://queue.example:shop"}, []string{script("room=shop&fail=closed"), "success "}},
		{"the script is not there", object{"server": "https://queue.example", "room": "shop", "checkIn": true},
			[]string{"injectScript"}, nil, []string{script("room=shop&fail=closed"), "failure "}},
		{"the installation has a fault", object{"server": "https://queue.example", "room": "shop", "checkIn": true},
			[]string{"sendPixel"}, nil, []string{script("room=shop&fail=closed"), check, "failure "}},
		{"no TLS", object{"server": "http://queue.example", "room": "shop"}, nil, nil, []string{"failure "}},
		{"an address with a query", object{"server": "https://queue.example/?x=", "room": "shop"}, nil, nil, []string{"failure "}},
		{"nothing set", object{}, nil, nil, []string{"failure "}},
		{"no room", object{"server": "https://queue.example", "room": nil}, nil, nil, []string{"failure "}},
	} {
		input, err := json.Marshal(object{
			"code": s["SANDBOXED_JS_FOR_WEB_TEMPLATE"], "permissions": json.RawMessage(s["WEB_PERMISSIONS"]), "data": c.data,
			"page": "https://shop.example:8443/p?a=b#c", "fails": append([]string{}, c.fails...), "stored": append([]string{}, c.stored...),
		})
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), testenv.Node(t), program(t, "gtm/sandbox.mjs"))
		cmd.Stdin = bytes.NewReader(input)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var did struct {
			Calls [][2]string
			Error string
		}
		if err := json.Unmarshal(out, &did); err != nil {
			t.Fatalf("%s: %s", c.name, out)
		}
		var got []string
		for _, call := range did.Calls {
			got = append(got, call[0]+" "+call[1])
		}
		if did.Error != "" || fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) {
			t.Errorf("%s: %q %s\nwant %q", c.name, got, did.Error, c.want)
		}
	}
}
