package main

import (
	"fmt"
	"os"
	"strings"
)

const (
	marker         = "@@@@@@@@" // where a body differs from call to call; bench/bodies.py
	requestPattern = "POST /mutate?timeout=5s HTTP/1.1\r\nHost: %s\r\n" +
		"Accept: application/json, */*\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s"
)

type template struct {
	text  []byte
	holes []int
}

func templates(file, host string) []template {
	content, err := os.ReadFile(file)
	check(err)
	var all []template
	for line := range strings.Lines(string(content)) {
		body := strings.TrimSuffix(line, "\n")
		text := fmt.Sprintf(requestPattern, host, len(body), body)
		found := template{text: []byte(text)}
		for at := 0; ; at += len(marker) {
			next := strings.Index(text[at:], marker)
			if next < 0 {
				break
			}
			at += next
			found.holes = append(found.holes, at)
		}
		all = append(all, found)
	}
	return all
}
