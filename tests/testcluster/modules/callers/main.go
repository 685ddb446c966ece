// Command callers calls an admission webhook as kube-apiserver does, many times at once, and counts what becomes of the calls.
//
// Nothing of how a call is made is written here: connections, TLS, retries and the checks of an answer are kube-apiserver's
// own code (k8s.io/apiserver/pkg/util/webhook with client-go below it). Here are the stand-ins for what surrounds it: a
// Service's ready endpoints, which standard input can change, and callers that send a recorded review again and again.
//
//	callers load  -ca FILE -review FILE -endpoints HOST:PORT,... -callers N [-calls N] [-rate N]
//	callers gaps  -ca FILE -review FILE -endpoints HOST:PORT -connections N -from 1s -to 3s [-idle 90s]
//
// Each line on standard input is answered with one line of JSON, a Tally:
//
//	endpoints HOST:PORT,...   from now on new connections go there
//	tell                      nothing changes
//	wait                      told once every caller has made its calls
//	stop                      told once the calls in flight have ended; no more are made
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

type options struct {
	mode, ca, review, endpoints, path string
	callers, calls, connections       int
	rate                              float64
	timeout, from, to, idle, jitter   time.Duration
	spread                            time.Duration
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	o, err := read(args)
	if err != nil {
		return err
	}
	tally := newTally()
	service, err := newService(o, tally)
	if err != nil {
		return err
	}
	w := newWork(o.calls)
	if o.mode == "gaps" {
		startGaps(o, service, tally, w)
	} else if err := startLoad(o, service, tally, w); err != nil {
		return err
	}
	return obey(service, tally, w)
}

// obey does what standard input says, line by line, until it ends.
func obey(service *service, tally *Tally, w *work) error {
	lines, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "endpoints":
			service.set(rest)
		case "tell":
		case "wait":
			w.wait()
		case "stop":
			w.stop()
			w.wait()
		default:
			return fmt.Errorf("%q is none of endpoints, tell, wait, stop", word)
		}
		if err := out.Encode(tally.told()); err != nil {
			return err
		}
	}
	return lines.Err()
}

func read(args []string) (options, error) {
	var o options
	if len(args) == 0 || (args[0] != "load" && args[0] != "gaps") {
		return o, fmt.Errorf("say load or gaps")
	}
	o.mode = args[0]
	flags := flag.NewFlagSet(o.mode, flag.ContinueOnError)
	flags.StringVar(&o.ca, "ca", "", "the webhook's caBundle, a file")
	flags.StringVar(&o.review, "review", "", "an AdmissionReview v1, a file; each call gets a uid of its own")
	flags.StringVar(&o.endpoints, "endpoints", "", "the Service's ready endpoints, with commas between")
	flags.StringVar(&o.path, "path", "/mutate", "the Service's path")
	flags.DurationVar(&o.timeout, "timeout", 10*time.Second, "the webhook's timeoutSeconds; kube-apiserver's default")
	flags.IntVar(&o.callers, "callers", 8, "how many call at once")
	flags.IntVar(&o.calls, "calls", 0, "how many calls each makes; 0: until stop")
	flags.Float64Var(&o.rate, "rate", 0, "calls per second of all together; 0: as fast as they are answered")
	flags.IntVar(&o.connections, "connections", 1, "how many connections, each with a gap of its own between two calls")
	flags.DurationVar(&o.from, "from", time.Second, "the shortest gap")
	flags.DurationVar(&o.to, "to", time.Second, "the longest gap")
	flags.DurationVar(&o.jitter, "jitter", 2*time.Millisecond, "a gap is longer or shorter by up to this")
	flags.DurationVar(&o.spread, "spread", time.Second, "the first calls are spread over this time")
	flags.DurationVar(&o.idle, "idle", 0, "how long an idle connection is kept; 0: kube-apiserver's 90s")
	return o, flags.Parse(args[1:])
}
