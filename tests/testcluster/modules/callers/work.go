package main

import (
	"math/rand/v2"
	"sync"
	"time"
)

// work is what the callers have still to do.
type work struct {
	calls   int // of each caller; 0: no end
	stopped chan struct{}
	once    sync.Once
	callers sync.WaitGroup
}

func newWork(calls int) *work {
	return &work{calls: calls, stopped: make(chan struct{})}
}

func (w *work) stop() { w.once.Do(func() { close(w.stopped) }) }
func (w *work) wait() { w.callers.Wait() }

// pause for so long; false: no more calls are wanted.
func (w *work) pause(length time.Duration) bool {
	select {
	case <-w.stopped:
		return false
	default:
	}
	if length <= 0 {
		return true
	}
	select {
	case <-w.stopped:
		return false
	case <-time.After(length):
		return true
	}
}

// startLoad: callers that share one client, as all requests to one webhook do in kube-apiserver.
func startLoad(o options, service *service, tally *Tally, w *work) error {
	client, err := service.client()
	if err != nil {
		return err
	}
	interval := time.Duration(0)
	if o.rate > 0 {
		interval = time.Duration(float64(o.callers) / o.rate * float64(time.Second))
	}
	for caller := range o.callers {
		w.callers.Go(func() {
			next := time.Now().Add(interval * time.Duration(caller) / time.Duration(o.callers))
			for made := 0; (w.calls == 0 || made < w.calls) && w.pause(time.Until(next)); made++ {
				service.call(client)
				next = next.Add(interval)
			}
		})
	}
	return nil
}

// startGaps: connections with a client each, so that a call finds its own connection idle for as long as the gap was.
func startGaps(o options, service *service, tally *Tally, w *work) {
	for number := range o.connections {
		part := float64(number) / float64(max(1, o.connections-1))
		gap := o.from + time.Duration(part*float64(o.to-o.from))
		first := time.Duration(rand.Float64() * float64(o.spread))
		w.callers.Go(func() {
			client, err := service.client()
			if err != nil {
				tally.called(err, 0, 0)
				return
			}
			if !w.pause(first) {
				return
			}
			service.call(client)
			if w.pause(gap + time.Duration((rand.Float64()*2-1)*float64(o.jitter))) {
				service.call(client)
			}
		})
	}
}
