package main

import (
	"slices"
	"time"
)

type report struct {
	Calls       int          `json:"calls"`
	Denied     int          `json:"denied"`
	Rate        float64      `json:"rate"`         // answers a second
	Percentiles [][2]float64 `json:"percentiles"`  // of calls, microseconds
	Begin       float64      `json:"begin"`        // seconds since 1970 of the first slot
	SlotSeconds float64      `json:"slot_seconds"` // length of a slot
	Slots       []float64    `json:"slots"`        // longest latency of the calls due in each, microseconds
}

// report on calls that were due every gap; 0: at no fixed times, so there are no slots.
func (d *desk) report(gap time.Duration, elapsed time.Duration) report {
	skipped := 0
	if gap > 0 {
		skipped = min(int(warmUp/gap), len(d.took)/4)
	}
	out := report{Calls: len(d.took) - skipped, Denied: d.denied, Rate: float64(len(d.took)) / elapsed.Seconds()}
	out.Begin, out.SlotSeconds = float64(d.begin.UnixNano())/1e9, slot.Seconds()
	for number, took := range d.took {
		if gap == 0 {
			break
		}
		at := int(time.Duration(number) * gap / slot)
		for at >= len(out.Slots) { // calls rarer than slots leave some empty
			out.Slots = append(out.Slots, 0)
		}
		if number >= skipped {
			out.Slots[at] = max(out.Slots[at], float64(took)/1e3)
		}
	}
	sorted := slices.Sorted(slices.Values(d.took[skipped:]))
	for _, share := range shares(len(sorted)) {
		out.Percentiles = append(out.Percentiles, [2]float64{share, float64(sorted[min(int(share/100*float64(len(sorted))), len(sorted)-1)]) / 1e3})
	}
	return out
}

// shares gives the percentiles worth a point: ten for each nine, as far as there are ten calls beyond.
func shares(calls int) []float64 {
	var all []float64
	for left := 100.0; left/100*float64(calls) >= 10; left /= 1.2589254 {
		all = append(all, 100-left)
	}
	all = append(all, 50, 90, 99, 99.9, 100)
	slices.Sort(all)
	return slices.Compact(all)
}
