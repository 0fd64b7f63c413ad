package connector

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// files has every connector's folder, and the sources that archives are made of. Programs that do not call [All] do not carry it.
//
//go:embed *.go *.sh closed.html README.md vectors.json */*
var files embed.FS

// Vectors is the conformance vectors, as README.md describes them: what every server-side connector has to do, case by case.
//
//go:embed vectors.json
var Vectors []byte

// Kind is how a connector is packed.
type Kind string

// The kinds of artifact; each is also the extension of its download (seed 004, /connectors/<name>/latest.{js,tgz,zip}).
const (
	JS  Kind = "js"  // one file, as it is
	TGZ Kind = "tgz" // a gzipped tar archive
	ZIP Kind = "zip"
)

// Manifest is a connector's connector.json, and the artifact that it describes.
type Manifest struct {
	Name    string `json:"name"` // a-z 0-9 -, the name of its folder and of its download
	Title   string `json:"title"`
	Version string `json:"version"` // MAJOR.MINOR.PATCH
	Kind    Kind   `json:"kind"`
	// Files maps each path inside the archive to the file that it is made of, relative to the folder.
	Files map[string]string `json:"files"`
	// The commands that an integrator runs. {server}, {roomId} and {version} stand for what [Manifest.Command] fills in.
	Install string `json:"install"`
	Upgrade string `json:"upgrade"`
	Verify  string `json:"verify"`

	artifact []byte
}

// All is every connector of this build, by name. It panics when a folder is not what README.md says: that is a fault of the build.
func All() []*Manifest { return all() }

var all = sync.OnceValue(func() []*Manifest {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic("connector: " + err.Error())
	}
	var list []*Manifest
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		m, err := load(e.Name())
		if err != nil {
			panic(fmt.Sprintf("connector: %s: %v", e.Name(), err))
		}
		list = append(list, m)
	}
	return list
})

// Named is the connector of that name.
func Named(name string) (*Manifest, bool) {
	i := slices.IndexFunc(All(), func(m *Manifest) bool { return m.Name == name })
	if i < 0 {
		return nil, false
	}
	return All()[i], true
}

var (
	nameShape    = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)
	versionShape = regexp.MustCompile(`^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)$`)
)

func load(folder string) (*Manifest, error) {
	raw, err := files.ReadFile(folder + "/connector.json")
	if err != nil {
		return nil, err
	}
	var m Manifest
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return nil, err
	}
	switch {
	case m.Name != folder || !nameShape.MatchString(m.Name):
		return nil, fmt.Errorf("the name is %q", m.Name)
	case !versionShape.MatchString(m.Version):
		return nil, fmt.Errorf("the version is %q", m.Version)
	case m.Title == "" || m.Install == "" || m.Upgrade == "" || m.Verify == "":
		return nil, fmt.Errorf("a title or a command is missing")
	case len(m.Files) == 0:
		return nil, fmt.Errorf("it has no files")
	}
	content := make(map[string][]byte, len(m.Files))
	for inside, source := range m.Files {
		if inside == "" || path.Clean(inside) != inside || path.IsAbs(inside) || strings.HasPrefix(inside, "..") {
			return nil, fmt.Errorf("no archive may hold %q", inside)
		}
		if content[inside], err = files.ReadFile(path.Join(folder, source)); err != nil {
			return nil, err
		}
	}
	if m.artifact, err = pack(m.Kind, content); err != nil {
		return nil, err
	}
	return &m, nil
}

// Artifact is the bytes of the download. Do not write to them.
func (m *Manifest) Artifact() []byte { return m.artifact }

// SHA256 is the artifact's digest in lower-case hex.
func (m *Manifest) SHA256() string {
	sum := sha256.Sum256(m.artifact)
	return hex.EncodeToString(sum[:])
}

// Integrity is the artifact's digest as Subresource Integrity and npm spell it: "sha256-…", in base64.
func (m *Manifest) Integrity() string {
	sum := sha256.Sum256(m.artifact)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// Path is where the download is served: /connectors/<name>/latest.<kind>.
func (m *Manifest) Path() string { return "/connectors/" + m.Name + "/latest." + string(m.Kind) }

// Command fills in one of the manifest's commands. server is the queue's address, without a slash at the end.
func (m *Manifest) Command(command, server, roomID string) string {
	return strings.NewReplacer("{server}", server, "{roomId}", roomID, "{version}", m.Version).Replace(command)
}

// names are the archive's paths in their order.
func names(content map[string][]byte) []string { return slices.Sorted(maps.Keys(content)) }
