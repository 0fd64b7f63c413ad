package projection_test

import (
	"testing"

	"qm/projection"
	"qm/projection/projectiontest"
)

func TestMemory(t *testing.T) {
	projectiontest.Run(t, func(*testing.T) projection.Store { return projection.NewMemory() })
}
