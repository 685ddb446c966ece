// Command kstatus says of objects what Helm 4, Flux and others that wait by kstatus would take them for.
//
// Standard input is JSON, one object per line, as the API server gives it. Standard output has one line for each: its
// Verdict, in the same order. Nothing here decides by itself: the copy of kstatus that Helm 4 and Flux are built with does.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// longest is the length of the largest object that etcd stores by default, with room for a line's end.
const longest = 2 << 20

// Verdict is what a wait makes of one object: Current ends it well, Failed badly, InProgress not yet.
type Verdict struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, longest)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(lines.Bytes()); err != nil {
			return err
		}
		result, err := status.Compute(object)
		if err != nil {
			return err
		}
		if err := out.Encode(Verdict{Status: result.Status.String(), Message: result.Message}); err != nil {
			return err
		}
	}
	return lines.Err()
}
