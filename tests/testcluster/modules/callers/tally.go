package main

import (
	"maps"
	"sync"
	"time"
)

// Tally is what became of the calls so far.
type Tally struct {
	Calls   int            `json:"calls"`
	Failed  int            `json:"failed"`
	Retried int            `json:"retried"` // tries after the first
	Dials   int            `json:"dials"`
	Slowest float64        `json:"slowest"` // seconds
	Errors  map[string]int `json:"errors"`  // of the failed calls

	mu sync.Mutex
}

func newTally() *Tally {
	return &Tally{Errors: map[string]int{}}
}

func (t *Tally) dialled() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Dials++
}

func (t *Tally) called(err error, attempts int, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Calls++
	t.Retried += max(0, attempts-1)
	t.Slowest = max(t.Slowest, took.Seconds())
	if err != nil {
		t.Failed++
		t.Errors[text(err)]++
	}
}

// told is a copy that nobody changes.
func (t *Tally) told() *Tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	return &Tally{
		Calls: t.Calls, Failed: t.Failed, Retried: t.Retried, Dials: t.Dials, Slowest: t.Slowest, Errors: maps.Clone(t.Errors),
	}
}
