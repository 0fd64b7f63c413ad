package main

import (
	"fmt"
	"slices"
)

// pairing is what alternating slices came to: medians over all rounds.
type pairing struct {
	ratio           float64 // candidate to the mean of the two bases around it
	base, candidate float64
}

// pair measures base and candidate in alternating slices: base, candidate, base, candidate, base. Machines and their disks swing
// tenfold between minutes, so only the ratio of a candidate to the mean of the two bases around it holds, and of those ratios
// the median. Each function measures one slice. One slice of each that is not counted comes first.
func pair(rounds int, base, candidate func() (float64, error)) (pairing, error) {
	if _, err := base(); err != nil {
		return pairing{}, fmt.Errorf("base: %w", err)
	}
	if _, err := candidate(); err != nil {
		return pairing{}, err
	}
	return pairCold(rounds, base, candidate)
}

// pairCold is pair without the slices that are not counted.
func pairCold(rounds int, base, candidate func() (float64, error)) (pairing, error) {
	var ratios, bases, candidates []float64
	for i := range 2*rounds + 1 {
		if i%2 == 0 {
			v, err := base()
			if err != nil {
				return pairing{}, fmt.Errorf("base: %w", err)
			}
			bases = append(bases, v)
			continue
		}
		v, err := candidate()
		if err != nil {
			return pairing{}, err
		}
		candidates = append(candidates, v)
	}
	for i, v := range candidates {
		ratios = append(ratios, 2*v/(bases[i]+bases[i+1]))
	}
	return pairing{median(ratios), median(bases), median(candidates)}, nil
}

// median sorts values and returns the middle one; of an even number, the mean of the two in the middle.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	mid := len(values) / 2
	if len(values)%2 == 0 {
		return (values[mid-1] + values[mid]) / 2
	}
	return values[mid]
}
