package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/tdewolff/minify/v2"
	"github.com/tdewolff/minify/v2/css"
	"github.com/tdewolff/minify/v2/js"
)

// asset is one embedded file as it is served.
type asset struct {
	path        string // "/assets/waiting-<hash>.css"
	body        []byte
	packed      []byte // body by gzip
	contentType string
}

// The assets by file name ("waiting.css", "console/app.js") and by path; written once, at start.
var byName, byPath = mustLoad(files, shrink())

// contentTypes are the kinds of file that are assets, by extension.
var contentTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// imported finds what a module imports by a relative address: import … from "./x.js",
// import "../x.js", export … from "./x.js" and import("./x.js").
var imported = regexp.MustCompile(`(\bfrom\s*|\bimport\s*\(?\s*)(["'])(\.\.?/[^"']*)["']`)

// licence is the notice at the head of a module that somebody else wrote. It stays with what is served.
var licence = regexp.MustCompile(`(?s)\A/\*\*.*?\bCopyright\b.*?\*/\n`)

// shrink returns what takes comments, spaces and long local names out of an
// asset, by its extension: the page has 40 KB, and the languages with three
// bytes a letter need them for their words.
func shrink() func(ext string, body []byte) ([]byte, error) {
	m := minify.New()
	m.AddFunc(".css", css.Minify)
	m.AddFunc(".js", js.Minify)
	return func(ext string, body []byte) ([]byte, error) {
		if ext != ".css" && ext != ".js" {
			return body, nil
		}
		small, err := m.Bytes(ext, body)
		return append(licence.Find(body), small...), err
	}
}

// mustLoad reads the assets of dir. A build whose modules import what is not
// there, or each other in a circle, has no hash to name them by: it panics.
func mustLoad(dir fs.FS, shrink func(ext string, body []byte) ([]byte, error)) (names, paths map[string]asset) {
	l := loader{dir: dir, shrink: shrink, names: map[string]asset{}}
	err := fs.WalkDir(dir, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || contentTypes[path.Ext(name)] == "" {
			return err
		}
		_, err = l.load(name)
		return err
	})
	if err != nil {
		panic("web: " + err.Error())
	}
	paths = map[string]asset{}
	for _, a := range l.names {
		paths[a.path] = a
	}
	return l.names, paths
}

// loader loads assets, what a module imports before the module itself: the
// hash of the one is part of the other.
type loader struct {
	dir    fs.FS
	shrink func(ext string, body []byte) ([]byte, error)
	names  map[string]asset
	above  []string // the modules that wait for what they import
}

func (l *loader) load(name string) (asset, error) {
	if a, ok := l.names[name]; ok {
		return a, nil
	}
	if slices.Contains(l.above, name) {
		return asset{}, fmt.Errorf("modules import each other in a circle: %s", strings.Join(append(l.above, name), " → "))
	}
	body, err := fs.ReadFile(l.dir, name)
	if err != nil {
		return asset{}, fmt.Errorf("read embedded file: %w", err)
	}
	ext := path.Ext(name)
	if ext == ".js" {
		l.above = append(l.above, name)
		if body, err = l.resolve(name, body); err != nil {
			return asset{}, err
		}
		l.above = l.above[:len(l.above)-1]
	}
	if body, err = l.shrink(ext, body); err != nil {
		return asset{}, fmt.Errorf("shrink %s: %w", name, err)
	}
	sum := sha256.Sum256(body)
	a := asset{
		path: fmt.Sprintf("/assets/%s-%s%s", strings.ReplaceAll(strings.TrimSuffix(name, ext), "/", "-"),
			base64.RawURLEncoding.EncodeToString(sum[:])[:22], ext),
		body:        body,
		packed:      pack(body),
		contentType: contentTypes[ext],
	}
	l.names[name] = a
	return a, nil
}

// resolve writes the served names of what a module imports into it. They stay
// relative, so that they hold under every base path. All assets are served
// side by side, in whichever directory they lie here.
func (l *loader) resolve(name string, body []byte) ([]byte, error) {
	var failed error
	out := imported.ReplaceAllFunc(body, func(match []byte) []byte {
		m := imported.FindSubmatch(match)
		if path.Ext(string(m[3])) != ".js" {
			failed = fmt.Errorf("%s imports %q, which is no module", name, m[3])
			return match
		}
		a, err := l.load(path.Join(path.Dir(name), string(m[3])))
		if err != nil {
			if failed == nil {
				failed = fmt.Errorf("%s imports %q: %w", name, m[3], err)
			}
			return match
		}
		return fmt.Appendf(nil, "%s%s./%s%s", m[1], m[2], path.Base(a.path), m[2])
	})
	return out, failed
}

// Asset returns the file behind a path such as "/assets/waiting-<hash>.css",
// where <hash> is the first 22 characters of the base64url SHA-256 of the file
// (seed 004, Visitor). A path that names no file of this build answers
// ok == false, never a file of another hash. Serve what it returns with
// [AssetCacheControl]. On an inline host, strip "/__qm" first. The body is
// shared: do not write to it.
func Asset(path string) (body []byte, contentType string, ok bool) {
	a, ok := byPath[path]
	return a.body, a.contentType, ok
}

// Packed is the file behind a path by gzip, nil where there is none. Pages are not packed: they carry what is their visitor's alone
// beside what an address can put there, and the length of what is packed would tell of it.
func Packed(path string) []byte { return byPath[path].packed }

func pack(body []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is one
	_, _ = z.Write(body)                                  // into memory
	_ = z.Close()
	return b.Bytes()
}

// AssetCacheControl is the Cache-Control of an asset: its path changes when
// its content does, or that of a module it imports. Everything else here is
// no-store.
const AssetCacheControl = "public, max-age=31536000, immutable"

// AssetPath returns the path at which the named file ("waiting.css",
// "console/app.js") of this build is served, or "" for a name that is no asset.
func AssetPath(name string) string { return byName[name].path }
