package main

import (
	"slices"
	"time"
)

type report struct {
	Pods    int     `json:"pods"` // answered, created or not
	Failed  int     `json:"failed"`
	Said    string  `json:"said"`    // about the first that failed
	Seconds float64 `json:"seconds"` // until the last answer
	P50     float64 `json:"p50"`     // latencies in microseconds, of all calls
	P99     float64 `json:"p99"`
	Longest float64 `json:"longest"`
	CPU     float64 `json:"cpu"` // seconds of this process
}

func reported(all []seen, began time.Time, cpu time.Duration) report {
	out := report{CPU: cpu.Seconds()}
	var took []time.Duration
	ended := began
	for _, one := range all {
		took = append(took, one.took...)
		out.Failed += one.failed
		if out.Said == "" {
			out.Said = one.said
		}
		if one.ended.After(ended) {
			ended = one.ended
		}
	}
	slices.Sort(took)
	out.Pods, out.Seconds = len(took), ended.Sub(began).Seconds()
	out.P50, out.P99, out.Longest = at(took, 0.5), at(took, 0.99), at(took, 1)
	return out
}

// at gives the latency that this share of calls stayed within.
func at(sorted []time.Duration, share float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[min(int(share*float64(len(sorted))), len(sorted)-1)].Nanoseconds()) / 1e3
}
