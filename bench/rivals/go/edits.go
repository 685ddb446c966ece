package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	protect  = "karpenter.sh/do-not-disrupt"
	applied  = "berth.dev/applied"
	capacity = "karpenter.sh/capacity-type"
	machine  = "karpenter.k8s.aws/instance-"
)

//go:embed edits.json
var constants []byte
var edits struct {
	Note                   string // as long as Berth's own annotation is on average
	Toleration             corev1.Toleration
	Training, Small, Whole []corev1.NodeSelectorRequirement
	OnDemand, Spot         corev1.NodeSelectorRequirement
}

func init() { must(json.Unmarshal(constants, &edits)) }

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// edit makes the edits that Berth's shipped policies make for the pods of the bench, and returns them as a JSON Patch.
func edit(pod *corev1.Pod) (patch []operation) {
	add := func(path string, value any) { patch = append(patch, operation{"add", path, value}) }
	gpus := int64(0)
	for _, container := range pod.Spec.Containers {
		limit := container.Resources.Limits["nvidia.com/gpu"]
		gpus += limit.Value()
	}
	if gpus == 0 {
		return nil
	}
	kind := ""
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		kind = owner.Kind
	}
	isJob, isServer := kind == "Job" || kind == "PyTorchJob", kind == "ReplicaSet" && gpus == 1
	isTraining := isJob && gpus >= 4
	if !slices.Contains(pod.Spec.Tolerations, edits.Toleration) {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, edits.Toleration)
		add("/spec/tolerations", pod.Spec.Tolerations)
	}
	if expressions := require(pod, gpus, isTraining, isJob, isServer); len(expressions) > 0 {
		selector := required(&pod.Spec)
		for i := range selector.NodeSelectorTerms {
			selector.NodeSelectorTerms[i].MatchExpressions = append(selector.NodeSelectorTerms[i].MatchExpressions, expressions...)
		}
		add("/spec/affinity", pod.Spec.Affinity)
	}
	former := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if isJob && (pod.Spec.TerminationGracePeriodSeconds == nil || *pod.Spec.TerminationGracePeriodSeconds == former) { // else the author's
		seconds := int64(120)
		if isTraining {
			seconds = 1800
		}
		pod.Spec.TerminationGracePeriodSeconds = &seconds
		add("/spec/terminationGracePeriodSeconds", seconds)
		for i, container := range pod.Spec.Containers {
			for name, probe := range map[string]*corev1.Probe{"livenessProbe": container.LivenessProbe, "startupProbe": container.StartupProbe} {
				if probe != nil && probe.TerminationGracePeriodSeconds == nil {
					probe.TerminationGracePeriodSeconds = &former
					add(fmt.Sprintf("/spec/containers/%d/%s/terminationGracePeriodSeconds", i, name), former)
				}
			}
		}
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	if isTraining && pod.Annotations[protect] == "" {
		pod.Annotations[protect] = "true"
	}
	pod.Annotations[applied] = edits.Note
	add("/metadata/annotations", pod.Annotations)
	return patch
}

// require returns what the node must have beside what the author wrote.
func require(pod *corev1.Pod, gpus int64, isTraining, isJob, isServer bool) (expressions []corev1.NodeSelectorRequirement) {
	if isTraining && !names(pod, machine) {
		expressions = append(expressions, edits.Training...)
	} else if isServer && !names(pod, machine) {
		expressions = append(expressions, edits.Small...)
	}
	if (isJob || isServer) && !names(pod, capacity) {
		lasts, err := time.ParseDuration(pod.Annotations["berth.dev/expected-duration"])
		if isJob && err == nil && lasts <= 2*time.Hour {
			expressions = append(expressions, edits.Spot)
		} else {
			expressions = append(expressions, edits.OnDemand)
		}
	}
	if gpus >= 2 {
		expressions = append(expressions, edits.Whole...)
	}
	return expressions
}

// required returns the required node affinity, made with an empty term if there is none.
func required(spec *corev1.PodSpec) *corev1.NodeSelector {
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	selector := &spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if *selector == nil {
		*selector = &corev1.NodeSelector{NodeSelectorTerms: make([]corev1.NodeSelectorTerm, 1)}
	}
	return *selector
}

// names tells whether the author requires a label whose key begins so.
func names(pod *corev1.Pod, prefix string) bool {
	keys := slices.Collect(maps.Keys(pod.Spec.NodeSelector))
	if affinity := pod.Spec.Affinity; affinity != nil && affinity.NodeAffinity != nil {
		if selector := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; selector != nil {
			for _, term := range selector.NodeSelectorTerms {
				for _, expression := range term.MatchExpressions {
					keys = append(keys, expression.Key)
				}
			}
		}
	}
	return slices.ContainsFunc(keys, func(key string) bool { return strings.HasPrefix(key, prefix) })
}
