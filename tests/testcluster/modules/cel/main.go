// Command cel answers for kube-apiserver: which webhooks of a registration would it call for an object?
//
// Nothing here decides by itself. Objects are decoded and defaulted by the API server's own scheme, the registration is
// checked by the API server's own validation, and whether a webhook is called (rules, namespaceSelector, matchConditions
// with their cost limits) is said by the code that every call to a webhook goes through, generic.Webhook.ShouldCallHook.
//
// Standard input is JSON, one value per line: a Registration, then Requests. Standard output has one line for each:
// a Checked, then Answers, in the same order.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Registration is the two manifests, and the namespaces that exist (with the label every namespace has).
type Registration struct {
	Mutating   json.RawMessage `json:"mutating"`
	Validating json.RawMessage `json:"validating"`
	Namespaces []string        `json:"namespaces"`
}

// Checked has every error that kube-apiserver would deny the manifests for.
type Checked struct {
	Invalid []string `json:"invalid"`
}

// Request is one admission request. Typed objects are decoded, defaulted and converted as the built-in kinds are; the
// others stay as they are, which is how custom resources come. Cost asks for the cost of the conditions too.
type Request struct {
	Resource    schema.GroupVersionResource `json:"resource"`
	Subresource string                      `json:"subresource"`
	Operation   string                      `json:"operation"`
	Namespace   string                      `json:"namespace"`
	User        string                      `json:"user"`
	Groups      []string                    `json:"groups"`
	Object      json.RawMessage             `json:"object"`
	OldObject   json.RawMessage             `json:"oldObject"`
	Typed       bool                        `json:"typed"`
	Cost        bool                        `json:"cost"`
}

// Answer names the webhooks that are called and the errors of those that can't be told (at Fail they deny the object;
// at Ignore they skip the webhook), both by webhook name. Object is what a webhook gets. Undecodable objects never get so far.
type Answer struct {
	Called      []string          `json:"called"`
	Errors      map[string]string `json:"errors"`
	Cost        map[string]int64  `json:"cost,omitempty"`
	Object      runtime.Object    `json:"object,omitempty"`
	Undecodable string            `json:"undecodable,omitempty"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	lines, encoder := json.NewDecoder(bufio.NewReaderSize(os.Stdin, 1<<20)), json.NewEncoder(os.Stdout)

	var registration Registration
	if err := lines.Decode(&registration); err != nil {
		return fmt.Errorf("the first line is no registration: %w", err)
	}
	judge, invalid, err := newJudge(registration)
	if err != nil {
		return err
	}
	if err := encoder.Encode(Checked{Invalid: invalid}); err != nil {
		return err
	}
	for lines.More() {
		var request Request
		if err := lines.Decode(&request); err != nil {
			return fmt.Errorf("a line is no request: %w", err)
		}
		if err := encoder.Encode(judge.answer(context.Background(), request)); err != nil {
			return err
		}
	}
	return nil
}

func absent(raw json.RawMessage) bool {
	return len(raw) == 0 || bytes.Equal(raw, []byte("null"))
}
