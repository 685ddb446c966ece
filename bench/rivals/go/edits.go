package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
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
	affinity = "/spec/affinity"
	required = affinity + "/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution"
)

//go:embed edits.json
var constants []byte
var edits = func() (all struct {
	Note                   string // as long as Berth's own annotation is on average
	Toleration             corev1.Toleration
	Training, Small, Whole []corev1.NodeSelectorRequirement
	OnDemand, Spot         corev1.NodeSelectorRequirement
}) {
	must(json.Unmarshal(constants, &all))
	return all
}()

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

type patch []operation

func (p *patch) add(path string, value any) { *p = append(*p, operation{"add", path, value}) }

// edit makes the edits that Berth's shipped policies make for the pods of the bench, and returns them as a JSON Patch.
func edit(pod *corev1.Pod) (out patch) {
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
	var require []corev1.NodeSelectorRequirement
	if isJob && gpus >= 4 && !names(pod, machine) {
		require = append(require, edits.Training...)
	} else if isServer && !names(pod, machine) {
		require = append(require, edits.Small...)
	}
	if (isJob || isServer) && !names(pod, capacity) {
		if isJob && isBrief(pod) {
			require = append(require, edits.Spot)
		} else {
			require = append(require, edits.OnDemand)
		}
	}
	if gpus >= 2 {
		require = append(require, edits.Whole...)
	}
	out.tolerate(&pod.Spec)
	out.require(&pod.Spec, require)
	if isJob && gpus >= 4 {
		out.grace(&pod.Spec, 1800)
	} else if isJob {
		out.grace(&pod.Spec, 120)
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
		out.add("/metadata/annotations", map[string]string{})
	}
	if isJob && gpus >= 4 && pod.Annotations[protect] == "" {
		pod.Annotations[protect] = "true"
		out.add("/metadata/annotations/"+strings.ReplaceAll(protect, "/", "~1"), "true")
	}
	pod.Annotations[applied] = edits.Note
	out.add("/metadata/annotations/"+strings.ReplaceAll(applied, "/", "~1"), edits.Note)
	return out
}

func (p *patch) tolerate(spec *corev1.PodSpec) {
	if !slices.ContainsFunc(spec.Tolerations, func(t corev1.Toleration) bool {
		return t.Key == edits.Toleration.Key && t.Operator == edits.Toleration.Operator && t.TolerationSeconds == nil &&
			(t.Effect == "" || t.Effect == edits.Toleration.Effect)
	}) {
		spec.Tolerations = append(spec.Tolerations, edits.Toleration)
		p.add("/spec/tolerations", spec.Tolerations)
	}
}

// require adds expressions to every required term.
func (p *patch) require(spec *corev1.PodSpec, expressions []corev1.NodeSelectorRequirement) {
	if len(expressions) == 0 {
		return
	}
	if terms := terms(spec); len(terms) > 0 {
		for i := range terms {
			terms[i].MatchExpressions = append(terms[i].MatchExpressions, expressions...)
		}
		p.add(required+"/nodeSelectorTerms", terms)
		return
	}
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: expressions}},
	}
	p.add(affinity, spec.Affinity)
}

// grace writes the grace period, unless the author wrote another than the default, and keeps it from probes.
func (p *patch) grace(spec *corev1.PodSpec, seconds int64) {
	former := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if spec.TerminationGracePeriodSeconds != nil && *spec.TerminationGracePeriodSeconds != former {
		return
	}
	spec.TerminationGracePeriodSeconds = &seconds
	p.add("/spec/terminationGracePeriodSeconds", seconds)
	for i, container := range spec.Containers {
		for name, probe := range map[string]*corev1.Probe{"livenessProbe": container.LivenessProbe, "startupProbe": container.StartupProbe} {
			if probe != nil && probe.TerminationGracePeriodSeconds == nil {
				probe.TerminationGracePeriodSeconds = &former
				p.add(fmt.Sprintf("/spec/containers/%d/%s/terminationGracePeriodSeconds", i, name), former)
			}
		}
	}
}

func terms(spec *corev1.PodSpec) []corev1.NodeSelectorTerm {
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	return spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
}

func isBrief(pod *corev1.Pod) bool {
	if text, ok := pod.Annotations["berth.dev/expected-duration"]; ok {
		lasts, err := time.ParseDuration(text)
		return err == nil && lasts <= 2*time.Hour
	}
	return pod.Spec.ActiveDeadlineSeconds != nil && *pod.Spec.ActiveDeadlineSeconds <= 7200
}

// names tells whether the author requires a label whose key begins so.
func names(pod *corev1.Pod, prefix string) bool {
	for key := range pod.Spec.NodeSelector {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return slices.ContainsFunc(terms(&pod.Spec), func(term corev1.NodeSelectorTerm) bool {
		return slices.ContainsFunc(term.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool { return strings.HasPrefix(e.Key, prefix) })
	})
}
