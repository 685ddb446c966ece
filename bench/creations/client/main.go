// Pods created on an API server by some writers at once, each on a connection of its own that is kept: a closed loop, for a time or
// until so many are made. Nothing of the answers is read but their status, so that the API server is what is measured.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	marker = "@@@@@@@@" // where a pod differs from call to call; bench/bodies.py
	giveUp = 60 * time.Second
)

type shop struct {
	base    string
	path    string
	token   string
	trusted *x509.CertPool
	bodies  [][]byte
	first   int64
	most    int64
	taken   atomic.Int64
	until   time.Time
	ready   sync.WaitGroup
	begin   chan struct{}
}

// seen is what one writer saw.
type seen struct {
	took   []time.Duration
	failed int
	said   string // of the first that failed
	ended  time.Time
}

func (s *shop) client() *http.Client {
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.trusted}, DisableCompression: true, MaxIdleConnsPerHost: 1}
	return &http.Client{Transport: transport, Timeout: giveUp}
}

// call sends one request and gives what was said where the status is not the wanted one.
func (s *shop) call(client *http.Client, method, path string, body []byte, wanted int) string {
	request, err := http.NewRequest(method, s.base+path, bytes.NewReader(body))
	check(err)
	request.Header.Set("Authorization", "Bearer "+s.token)
	request.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(request)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != wanted {
		said, _ := io.ReadAll(io.LimitReader(answer.Body, 2000))
		return fmt.Sprintf("%d %s", answer.StatusCode, said)
	}
	if _, err = io.Copy(io.Discard, answer.Body); err != nil {
		return err.Error()
	}
	return ""
}

// pod gives the number-th body, which no other call has where it is marked.
func (s *shop) pod(number int64) []byte {
	body := s.bodies[number%int64(len(s.bodies))]
	return bytes.ReplaceAll(body, []byte(marker), fmt.Appendf(nil, "%08d", (s.first+number)%100_000_000))
}

// write creates pods one after the other, once all writers are connected.
func (s *shop) write(out *seen) {
	client := s.client()
	if said := s.call(client, http.MethodGet, "/version", nil, http.StatusOK); said != "" {
		log.Fatalf("the API server does not answer: %s", said)
	}
	s.ready.Done()
	<-s.begin
	for {
		number := s.taken.Add(1) - 1
		if s.most > 0 && number >= s.most || s.most == 0 && time.Now().After(s.until) {
			break
		}
		body := s.pod(number)
		began := time.Now()
		said := s.call(client, http.MethodPost, s.path, body, http.StatusCreated)
		out.took = append(out.took, time.Since(began))
		if said != "" {
			if out.failed == 0 {
				out.said = said
			}
			out.failed++
		}
	}
	out.ended = time.Now()
}

func (s *shop) run(writers int, lasts time.Duration) report {
	all := make([]seen, writers)
	var done sync.WaitGroup
	s.ready.Add(writers)
	for i := range all {
		done.Go(func() { s.write(&all[i]) })
	}
	s.ready.Wait()
	began, before := time.Now(), used()
	s.until = began.Add(lasts)
	close(s.begin)
	done.Wait()
	return reported(all, began, used()-before)
}

// used is the processor time of this process, user and system.
func used() time.Duration {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func main() {
	address := flag.String("address", "", "HOST:PORT of the API server")
	ca := flag.String("ca", "", "its CA, PEM")
	pods := flag.String("pods", "", "a file with a pod in each line")
	namespace := flag.String("namespace", "default", "where they are created")
	writers := flag.Int("writers", 1, "at once")
	seconds := flag.Float64("seconds", 1, "how long")
	count := flag.Int64("count", 0, "how many, in place of how long")
	first := flag.Int64("first", 0, "the first number that is written into pods")
	dry := flag.Bool("dry-run", false, "nothing is stored")
	flag.Parse()
	pem, err := os.ReadFile(*ca)
	check(err)
	content, err := os.ReadFile(*pods)
	check(err)
	s := &shop{base: "https://" + *address, token: os.Getenv("BERTH_BENCH_TOKEN"), trusted: x509.NewCertPool(), first: *first, most: *count}
	s.trusted.AppendCertsFromPEM(pem)
	s.path = "/api/v1/namespaces/" + *namespace + "/pods"
	if *dry {
		s.path += "?dryRun=All"
	}
	for line := range strings.Lines(string(content)) {
		s.bodies = append(s.bodies, []byte(strings.TrimSuffix(line, "\n")))
	}
	s.begin = make(chan struct{})
	check(json.NewEncoder(os.Stdout).Encode(s.run(*writers, time.Duration(*seconds*float64(time.Second)))))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
