// Command kube computes with the code of Kubernetes and Karpenter what Berth's package kube computes in Python.
//
// Nothing here decides by itself: each function of the table below decodes a case, calls the code that the API server,
// kube-scheduler or Karpenter calls, and encodes the result.
//
// Standard input has lines of JSON, {"kind": ..., "cases": [...]}. Standard output has a line for each, in the same
// order: a list with a result for each case, which is null where that code rejects the case.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"gopkg.in/evanphx/json-patch.v4"
	"k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	"sigs.k8s.io/karpenter/pkg/scheduling"
)

type batch struct {
	Kind  string            `json:"kind"`
	Cases []json.RawMessage `json:"cases"`
}

var kinds = map[string]func(json.RawMessage) (any, error){
	"quantity":    quantity,
	"bytes":       of(func(number int64) (any, error) { return resource.NewQuantity(number, resource.BinarySI).String(), nil }),
	"duration":    of(func(text string) (any, error) { return time.ParseDuration(text) }),
	"integer":     of(func(text string) (any, error) { return strconv.ParseInt(text, 10, 64) }),
	"selector":    of(selector),
	"toleration":  of(toleration),
	"affinity":    of(affinity),
	"pod":         pod,
	"merge":       of(merge),
	"patch":       of(patch),
	"requirement": of(requirement),
}

func main() {
	klog.SetLogger(klog.Logger{}) // values of tolerations that are no number are logged
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	lines, out := json.NewDecoder(bufio.NewReaderSize(os.Stdin, 1<<20)), bufio.NewWriterSize(os.Stdout, 1<<20)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for {
		var given batch
		if err := lines.Decode(&given); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		compute, known := kinds[given.Kind]
		if !known {
			return fmt.Errorf("no function for %q", given.Kind)
		}
		results := make([]any, len(given.Cases))
		for i, raw := range given.Cases {
			if result, err := compute(raw); err == nil {
				results[i] = result
			}
		}
		if err := encoder.Encode(results); err != nil {
			return err
		}
	}
}

// of decodes the case of a function.
func of[Case any](compute func(Case) (any, error)) func(json.RawMessage) (any, error) {
	return func(raw json.RawMessage) (any, error) {
		var given Case
		if err := json.Unmarshal(raw, &given); err != nil {
			return nil, err
		}
		return compute(given)
	}
}

// quantity returns a JSON value as the exact decimal that it stands for.
func quantity(raw json.RawMessage) (any, error) {
	var read resource.Quantity
	if err := read.UnmarshalJSON(raw); err != nil {
		return nil, err
	}
	exact := read.AsDec()
	return fmt.Sprintf("%se%d", exact.UnscaledBig(), -exact.Scale()), nil
}

type selection struct {
	Selector metav1.LabelSelector `json:"selector"`
	Labels   labels.Set           `json:"labels"`
}

func selector(given selection) (any, error) {
	read, err := metav1.LabelSelectorAsSelector(&given.Selector)
	if err != nil {
		return nil, err
	}
	return read.Matches(given.Labels), nil
}

type toleranceOf struct {
	Tolerations []v1.Toleration `json:"tolerations"`
	Taint       v1.Taint        `json:"taint"`
}

// toleration knows Gt and Lt, as a scheduler with the gate TaintTolerationComparisonOperators.
func toleration(given toleranceOf) (any, error) {
	return corev1.TolerationsTolerateTaint(klog.Background(), given.Tolerations, &given.Taint, true), nil
}

type placement struct {
	Spec v1.PodSpec `json:"spec"`
	Node v1.Node    `json:"node"`
}

// affinity returns what kube-scheduler makes of the nodeSelector and the required terms: one that cannot be read matches nothing.
func affinity(given placement) (any, error) {
	matches, _ := nodeaffinity.GetRequiredNodeAffinity(&v1.Pod{Spec: given.Spec}).Match(&given.Node)
	return matches, nil
}

func merge(given [2]json.RawMessage) (any, error) {
	merged, err := strategicpatch.StrategicMergePatch(given[0], given[1], v1.PodSpec{})
	return json.RawMessage(merged), err
}

// patch applies operations as the API server applies those of a webhook.
func patch(given [2]json.RawMessage) (any, error) {
	operations, err := jsonpatch.DecodePatch(given[1])
	if err != nil {
		return nil, err
	}
	patched, err := operations.Apply(given[0])
	return json.RawMessage(patched), err
}

type requirements struct {
	Has   v1.NodeSelectorRequirement `json:"has"`
	Wants v1.NodeSelectorRequirement `json:"wants"`
	Tried []string                   `json:"tried"`
}

type intersection struct {
	Key    string                  `json:"key"`
	Op     v1.NodeSelectorOperator `json:"op"`
	Values []string                `json:"values"`
	Bounds map[string]string       `json:"bounds"`
	Admits []bool                  `json:"admits"`
	Meets  bool                    `json:"meets"`
}

// requirement intersects what a NodePool has with what a pod wants of one label.
func requirement(given requirements) (any, error) {
	has := scheduling.NewRequirement(given.Has.Key, given.Has.Operator, given.Has.Values...)
	wants := scheduling.NewRequirement(given.Wants.Key, given.Wants.Operator, given.Wants.Values...)
	both := has.Intersection(wants)
	found := intersection{
		Key:    both.Key,
		Op:     both.Operator(),
		Values: sets.List(sets.New(both.Values()...)),
		Bounds: map[string]string{},
		Meets:  scheduling.NewRequirements(has).Intersects(scheduling.NewRequirements(wants)) == nil,
	}
	for _, written := range scheduling.NewRequirements(both).NodeSelectorRequirements() {
		if written.Operator == "Gte" || written.Operator == "Lte" {
			found.Bounds[string(written.Operator)] = written.Values[0]
		}
	}
	for _, value := range given.Tried {
		found.Admits = append(found.Admits, both.Has(value))
	}
	return found, nil
}
