package connector

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"time"
)

// packed is the time that every packed file bears, so that the same files always make the same bytes. Zip knows no time before 1980.
var packed = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// pack makes a connector's download of its files, which are named by their paths inside it.
func pack(kind Kind, content map[string][]byte) ([]byte, error) {
	switch kind {
	case JS:
		if len(content) != 1 {
			return nil, fmt.Errorf("a js connector is one file, not %d", len(content))
		}
		return content[names(content)[0]], nil
	case TGZ:
		return packTar(content)
	case ZIP:
		return packZip(content)
	}
	return nil, fmt.Errorf("the kind is %q", kind)
}

func packTar(content map[string][]byte) ([]byte, error) {
	var out bytes.Buffer
	gz, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(gz)
	for _, name := range names(content) {
		err := archive.WriteHeader(&tar.Header{
			Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content[name])), ModTime: packed, Format: tar.FormatUSTAR,
		})
		if err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
		if _, err := archive.Write(content[name]); err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	if err := gz.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func packZip(content map[string][]byte) ([]byte, error) {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, name := range names(content) {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: packed}
		h.SetMode(0o644)
		w, err := archive.CreateHeader(h)
		if err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
		if _, err := w.Write(content[name]); err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
