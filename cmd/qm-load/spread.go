package main

import (
	"math"
	"time"
)

// spread counts durations in buckets that grow by a twentieth, so that its quantiles are good to 5 % and its size is fixed. It is not
// safe for concurrent use.
type spread struct {
	buckets [400]int
	n       int
	longest time.Duration
}

const (
	spreadStep  = 1.05
	spreadFirst = 10 * time.Microsecond // the end of the first bucket
)

func (s *spread) add(d time.Duration) {
	i := 0
	if d > spreadFirst {
		i = min(int(math.Log(float64(d)/float64(spreadFirst))/math.Log(spreadStep))+1, len(s.buckets)-1)
	}
	s.buckets[i]++
	s.n++
	s.longest = max(s.longest, d)
}

// at is the duration that a share of all do not exceed, in milliseconds.
func (s *spread) at(share float64) float64 {
	left := int(math.Ceil(share * float64(s.n)))
	for i, n := range s.buckets {
		if left -= n; left <= 0 {
			end := float64(spreadFirst) * math.Pow(spreadStep, float64(i))
			return math.Min(end, float64(s.longest)) / float64(time.Millisecond)
		}
	}
	return 0
}

// quantiles are in milliseconds.
type quantiles struct {
	Answers int     `json:"answers"`
	Median  float64 `json:"medianMs"`
	P95     float64 `json:"p95Ms"`
	P99     float64 `json:"p99Ms"`
	Longest float64 `json:"longestMs"`
}

func (s *spread) quantiles() quantiles {
	if s.n == 0 {
		return quantiles{}
	}
	return quantiles{s.n, s.at(0.5), s.at(0.95), s.at(0.99), float64(s.longest) / float64(time.Millisecond)}
}
