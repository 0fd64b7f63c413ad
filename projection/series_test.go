package projection_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"qm/engine/room"
	"qm/projection"
	"qm/projection/projectiontest"
)

func TestMemorySeries(t *testing.T) {
	projectiontest.RunSeries(t, func(*testing.T) projection.Series { return projection.NewMemorySeries() })
}

// What happened adds up, the most is the most of all, and how the room stood is how it stood at the end.
func TestGroup(t *testing.T) {
	rows := []room.Minute{
		{Minute: 118, Joined: 1, Depth: 9, DepthMost: 9, Generation: 1},
		{Minute: 120, Joined: 2, Passed: 1, WaitSum: 100, WaitMost: 100, Depth: 10, DepthMost: 30, Doors: 1, Generation: 1},
		{Minute: 179, Joined: 3, Passed: 2, WaitSum: 50, WaitMost: 40, Entered: 1, Lapsed: 2, Left: 3, Removed: 4, Depth: 4, DepthMost: 11, PreQueue: 5, Generation: 2},
		{Minute: 180, Left: 1, Generation: 2},
	}
	want := []room.Minute{
		{Minute: 60, Joined: 1, Depth: 9, DepthMost: 9, Generation: 1},
		{Minute: 120, Joined: 5, Passed: 3, WaitSum: 150, WaitMost: 100, Entered: 1, Lapsed: 2, Left: 3, Removed: 4, Depth: 4, DepthMost: 30, PreQueue: 5, Generation: 2},
		{Minute: 180, Left: 1, Generation: 2},
	}
	if diff := cmp.Diff(want, projection.Group(rows, projection.Hour)); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
	if _, ok := projection.Merge(60, nil); ok {
		t.Fatal("a row was made of nothing")
	}
}
