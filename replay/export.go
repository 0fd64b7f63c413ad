package replay

import (
	"fmt"
	"io"

	"qm/journal"
)

// Export writes records as NDJSON, byte for byte as they are stored, and returns how many.
func Export(w io.Writer, source Source) (records int64, err error) {
	lines := journal.NewLineWriter(w)
	err = source(func(r *journal.Record) error {
		records++
		return lines.Write(r)
	})
	if err == nil {
		err = lines.Flush()
	}
	if err != nil {
		return records, fmt.Errorf("export: %w", err)
	}
	return records, nil
}
