package httpapi

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"qm/edge/connector"
	"qm/web"
)

// vectorsPath is where the conformance vectors of connectors are.
const vectorsPath = "/connectors/vectors.json"

// handout is a connector as this server hands it out.
type handout struct {
	name, title, version      string
	kind                      connector.Kind
	path                      string
	body                      []byte
	sha256, integrity         string
	install, upgrade, recheck string // commands: {server}, {roomId} and {version} stand for what fill fills in
}

// handouts are all of them, by name: those of edge/connector, and the script tag, which pages load from its own address and sites may
// keep a copy of.
var handouts = sync.OnceValue(func() []*handout {
	var list []*handout
	for _, m := range connector.All() {
		list = append(list, &handout{
			name: m.Name, title: m.Title, version: m.Version, kind: m.Kind, path: m.Path(), body: m.Artifact(), install: m.Install, upgrade: m.Upgrade, recheck: m.Verify,
		})
	}
	script, _ := web.Snippet()
	version := ""
	if found := snippetVersion.FindSubmatch(script); found != nil {
		version = string(found[1])
	}
	const tag = `<script src="{server}/snippet/qm.js" data-room="{roomId}"></script>`
	list = append(list, &handout{
		name: "snippet", title: "Script tag", version: version, kind: connector.JS, path: "/connectors/snippet/latest.js", body: script, install: tag, upgrade: tag,
		recheck: "curl -fsS '{server}/api/v1/verify?roomId={roomId}&url=https://YOUR-SITE/&connector=snippet&version={version}'",
	})
	slices.SortFunc(list, func(a, b *handout) int { return strings.Compare(a.name, b.name) })
	for _, h := range list {
		sum := sha256.Sum256(h.body)
		h.sha256, h.integrity = hex.EncodeToString(sum[:]), "sha256-"+base64.StdEncoding.EncodeToString(sum[:])
	}
	return list
})

// snippetVersion is where the script tag says its version.
var snippetVersion = regexp.MustCompile(`version:\s*"(\d+\.\d+\.\d+)"`)

// handoutOf is the connector of that name.
func handoutOf(name string) (*handout, bool) {
	i := slices.IndexFunc(handouts(), func(h *handout) bool { return h.name == name })
	if i < 0 {
		return nil, false
	}
	return handouts()[i], true
}

// fill completes one of a connector's commands for a server and a room.
func (h *handout) fill(command, server, roomID string) string {
	return strings.NewReplacer("{server}", server, "{roomId}", roomID, "{version}", h.version).Replace(command)
}

// exampleRoom stands in the registry's commands where no room is asked for.
const exampleRoom = "YOUR-ROOM"

// connectors is the registry: every connector that this server hands out, with the commands of an integrator who has this server
// (seed 004, GET /api/connectors). With roomId= the commands name that room.
func (s *Server) connectors(x *exchange) error {
	if err := s.allow(x, s.checks); err != nil {
		return err
	}
	id, ok, err := x.query("roomId")
	if err != nil {
		return err
	}
	switch {
	case !ok:
		id = exampleRoom
	case !validRoomID(id):
		return refuseField("invalid_room_id", "roomId", "")
	}
	base := s.base(x.r)
	b := append(x.buf[:0], `{"api":"v1","connectors":[`...)
	for i, c := range handouts() {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"name":`...), c.name)
		b = appendText(b, "title", c.title)
		b = appendText(b, "version", c.version)
		b = appendText(b, "kind", string(c.kind))
		b = appendText(b, "download", base+c.path)
		b = appendInt(b, "size", int64(len(c.body)))
		b = appendText(b, "sha256", c.sha256)
		b = appendText(b, "integrity", c.integrity)
		b = appendText(b, "install", c.fill(c.install, base, id))
		b = appendText(b, "upgrade", c.fill(c.upgrade, base, id))
		b = append(appendText(b, "verify", c.fill(c.recheck, base, id)), '}')
	}
	sum := sha256.Sum256(connector.Vectors)
	b = appendText(append(append(b, ']'), `,"vectors":{"format":"json"`...), "download", base+vectorsPath)
	b = appendInt(b, "size", int64(len(connector.Vectors)))
	b = appendText(b, "sha256", hex.EncodeToString(sum[:]))
	b = appendText(b, "integrity", "sha256-"+base64.StdEncoding.EncodeToString(sum[:]))
	x.buf = append(b, '}', '}')
	x.json(http.StatusOK)
	return nil
}

// artifact is a connector's download, /connectors/<name>/latest.<kind>.
func (s *Server) artifact(x *exchange) error {
	c, ok := handoutOf(x.id)
	if !ok || c.path != x.r.URL.Path {
		return refuse("not_found")
	}
	if err := s.allow(x, s.checks); err != nil {
		return err
	}
	if c.kind != connector.JS {
		x.w.Header().Set("Content-Disposition", `attachment; filename="qm-`+c.name+"-"+c.version+"."+string(c.kind)+`"`)
	}
	x.file(mediaTypes[c.kind], c.sha256, c.body)
	return nil
}

// mediaTypes are the media types of downloads.
var mediaTypes = map[connector.Kind]string{
	connector.JS: "text/javascript; charset=utf-8", connector.TGZ: "application/gzip", connector.ZIP: "application/zip",
}

// vectors is what every connector has to do, case by case.
func (s *Server) vectors(x *exchange) error {
	if err := s.allow(x, s.checks); err != nil {
		return err
	}
	sum := sha256.Sum256(connector.Vectors)
	x.file(valueJSON[0], hex.EncodeToString(sum[:]), connector.Vectors)
	return nil
}

// file answers with a file that is the same for everybody. Who keeps it asks each time whether it is still the latest: one that is a few
// minutes old would not be what the registry's digest says.
func (x *exchange) file(kind, digest string, body []byte) {
	h := x.w.Header()
	tag := `"` + digest[:32] + `"`
	h.Set("Cache-Control", "no-cache")
	h.Set("Etag", tag)
	x.buf = x.buf[:0]
	if known(x.r.Header["If-None-Match"], tag) {
		x.send(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", kind)
	h.Set("Content-Length", itoa(len(body)))
	x.status, x.wrote = http.StatusOK, true
	x.w.WriteHeader(http.StatusOK)
	if !x.head {
		_, _ = x.w.Write(body) // the client may be gone; there is nobody to tell
	}
}

// wordpress is the connector that WordPress updates by itself, under the slug that its plugin has there.
const (
	wordpress     = "wordpress"
	wordpressSlug = "queue-manager"
)

// wordpressUpdate says the same of the WordPress plugin, in the shape that WordPress's updater reads (seed 004).
func (s *Server) wordpressUpdate(x *exchange) error {
	if err := s.allow(x, s.checks); err != nil {
		return err
	}
	c, ok := handoutOf(wordpress)
	if !ok {
		return refuse("not_found")
	}
	base := s.base(x.r)
	about := pluginHeader()
	b := append(x.buf[:0], `{"slug":"`+wordpressSlug+`"`...)
	b = appendText(b, "name", about["Plugin Name"])
	b = appendText(b, "version", c.version)
	b = appendText(b, "new_version", c.version)
	b = appendText(b, "homepage", base+"/docs")
	b = appendText(b, "url", base+"/docs")
	b = appendText(b, "package", base+c.path)
	b = appendText(b, "download_link", base+c.path)
	b = appendText(b, "sha256", c.sha256)
	b = appendText(b, "integrity", c.integrity)
	b = appendText(b, "requires", about["Requires at least"])
	b = appendText(b, "requires_php", about["Requires PHP"])
	b = appendText(b, "tested", about["Tested up to"])
	b = appendText(append(b, `,"sections":{"changelog":""`...), "description", about["Description"])
	x.buf = append(b, '}', '}')
	x.json(http.StatusOK)
	return nil
}

// pluginHeader is what the plugin's main file says of itself at its top, by WordPress's names: said there once, it is not said here again.
var pluginHeader = sync.OnceValue(func() map[string]string {
	about := map[string]string{}
	c, ok := handoutOf(wordpress)
	if !ok {
		return about
	}
	archive, err := zip.NewReader(bytes.NewReader(c.body), int64(len(c.body)))
	if err != nil {
		return about
	}
	for _, f := range archive.File {
		if path.Base(f.Name) != wordpressSlug+".php" {
			continue
		}
		source, err := f.Open()
		if err != nil {
			return about
		}
		top, err := io.ReadAll(io.LimitReader(source, 8<<10)) // as far as WordPress itself looks
		_ = source.Close()
		if err != nil {
			return about
		}
		for line := range strings.Lines(string(top)) {
			name, value, ok := strings.Cut(strings.TrimLeft(line, " *\t"), ":")
			if name, value = strings.TrimSpace(name), strings.TrimSpace(value); ok && about[name] == "" {
				about[name] = value
			}
		}
	}
	return about
})
