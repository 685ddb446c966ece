// Calls at fixed times, over a fixed set of TLS connections, whatever the server does. A latency is counted from the time at
// which the call was due, so a call that waits for a busy server or a busy connection counts its waiting.
//
// It stands in for wrk2 (not packaged; its timers have milliseconds) and vegeta (not on every module proxy). Linux only.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"
)

const (
	setTimerSlack = 29 // prctl(2): sleep to the nanosecond instead of 50 us
	slot          = 20 * time.Millisecond
	warmUp        = 500 * time.Millisecond // not counted: first calls on each connection
	giveUp        = 30 * time.Second
)

// call is one arrival: its number and the time at which it is due.
type call struct {
	number int
	due    time.Time
}

// line is one connection. Whoever took it from the idle ones, or is its reader, is the only one to write on it.
type line struct {
	conn *tls.Conn
	in   *bufio.Reader
	out  []byte
	now  call
}

type desk struct {
	sync.Mutex
	idle     []*line
	waiting  []call
	address  string
	trusted  *x509.CertPool
	bodies   []template
	counter  int
	counted  int // of anew
	begin    time.Time
	took     []int64 // ns by number; 0 where none
	denied  int
	answered sync.WaitGroup
}

func (d *desk) arrive(next call) {
	d.Lock()
	if len(d.idle) == 0 {
		d.waiting = append(d.waiting, next)
		d.Unlock()
		return
	}
	free := d.idle[len(d.idle)-1]
	d.idle = d.idle[:len(d.idle)-1]
	d.Unlock()
	d.send(free, next)
}

func (d *desk) send(on *line, next call) {
	on.now = next
	body := &d.bodies[next.number%len(d.bodies)]
	on.out = append(on.out[:0], body.text...)
	digits := fmt.Sprintf("%08d", (d.counter+next.number)%100_000_000)
	for _, at := range body.holes {
		copy(on.out[at:], digits)
	}
	_, err := on.conn.Write(on.out)
	check(err)
}

// take reads the answer to the call on a line, and opens the line again where the server ends it.
func (d *desk) take(from *line) (done call, ok bool) {
	ok, stays := from.answer()
	done = from.now
	if !stays {
		_ = from.conn.Close()
		*from = *d.open()
	}
	return done, ok
}

// read takes answers off one connection, and the next waiting call onto it, for ever.
func (d *desk) read(from *line) {
	for {
		done, ok := d.take(from)
		number, took := done.number, time.Since(done.due)
		d.Lock()
		d.took[number] = int64(took)
		if !ok {
			d.denied++
		}
		var next *call
		if len(d.waiting) > 0 {
			next = &d.waiting[0]
			d.waiting = d.waiting[1:]
		} else {
			d.idle = append(d.idle, from)
		}
		d.Unlock()
		d.answered.Done()
		if next != nil {
			d.send(from, *next)
		}
	}
}

// answer reads one: whether it is a 200, and whether the connection stays.
func (l *line) answer() (ok, stays bool) {
	said, err := http.ReadResponse(l.in, nil)
	check(err)
	_, err = io.Copy(io.Discard, said.Body)
	check(err)
	return said.StatusCode == http.StatusOK, !said.Close
}

// open makes a connection as an API server does: verified, without resumption.
func (d *desk) open() *line {
	conn, err := tls.Dial("tcp", d.address, &tls.Config{RootCAs: d.trusted})
	check(err)
	return &line{conn: conn, in: bufio.NewReaderSize(conn, 32<<10)}
}

// anew makes a connection for each call, as many at once as there are lines, until the time is over.
func (d *desk) anew(lines int, until time.Time) {
	var finished sync.WaitGroup
	for range lines {
		finished.Go(func() {
			for time.Now().Before(until) {
				d.Lock()
				next := call{number: d.counted, due: time.Now()}
				d.counted++
				d.Unlock()
				on := d.open()
				d.send(on, next)
				ok, _ := on.answer()
				took := time.Since(next.due)
				_ = on.conn.Close()
				d.Lock()
				d.took = append(d.took, int64(took))
				if !ok {
					d.denied++
				}
				d.Unlock()
			}
		})
	}
	finished.Wait()
}

// arrivals sends on time from a thread of its own: Go's own timers are good to a millisecond only.
func (d *desk) arrivals(calls int, gap time.Duration) {
	runtime.LockOSThread()
	_, _, _ = syscall.Syscall(syscall.SYS_PRCTL, setTimerSlack, 1, 0)
	for number := range calls {
		due := d.begin.Add(time.Duration(number) * gap)
		if wait := time.Until(due); wait > 0 {
			pause := syscall.NsecToTimespec(int64(wait))
			_ = syscall.Nanosleep(&pause, nil)
		}
		d.arrive(call{number: number, due: due})
	}
}

func main() {
	address := flag.String("address", "127.0.0.1:8443", "HOST:PORT")
	ca := flag.String("ca", "ca.crt", "PEM")
	bodies := flag.String("bodies", "", "a file with a body in each line")
	rate := flag.Float64("rate", 1000, "calls a second")
	seconds := flag.Float64("seconds", 10, "how long")
	connections := flag.Int("connections", 25, "as many as an API server keeps idle")
	anew := flag.Bool("anew", false, "a connection for each call, one after the other on each line; no fixed times")
	counter := flag.Int("counter", 0, "the first number that is written into bodies")
	flag.Parse()
	debug.SetGCPercent(1000)
	pem, err := os.ReadFile(*ca)
	check(err)
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(pem)
	d := &desk{address: *address, trusted: trusted, bodies: templates(*bodies, *address), counter: *counter}
	d.begin = time.Now()
	if *anew {
		d.anew(*connections, d.begin.Add(time.Duration(*seconds*float64(time.Second))))
		check(json.NewEncoder(os.Stdout).Encode(d.report(0, time.Since(d.begin))))
		return
	}
	calls := int(*rate * *seconds)
	gap := time.Duration(float64(time.Second) / *rate)
	d.took = make([]int64, calls)
	for range *connections {
		d.idle = append(d.idle, d.open())
	}
	for _, each := range d.idle {
		go d.read(each)
	}
	d.answered.Add(calls)
	time.AfterFunc(time.Duration(*seconds*float64(time.Second))+giveUp, func() { log.Fatal("calls without an answer after 30 s") })
	d.begin = time.Now()
	d.arrivals(calls, gap)
	d.answered.Wait()
	check(json.NewEncoder(os.Stdout).Encode(d.report(gap, time.Since(d.begin))))
}

func check(err error) {
	if err == io.EOF {
		log.Fatal("the server closed a connection")
	}
	if err != nil {
		log.Fatal(err)
	}
}
