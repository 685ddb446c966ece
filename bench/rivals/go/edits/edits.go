// Package edits is what Berth decides for the pods of the bench, hard-coded: what somebody writes who needs these edits and
// has no engine for policies. It reads the typed pod, as handlers written in Go do.
package edits

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	GPU      = corev1.ResourceName("nvidia.com/gpu")
	Protect  = "karpenter.sh/do-not-disrupt"
	Applied  = "berth.dev/applied"
	duration = "berth.dev/expected-duration"
	capacity = "karpenter.sh/capacity-type"
	machine  = "karpenter.k8s.aws/instance-"
	short    = 2 * time.Hour
)

// Note stands for Berth's own annotation: as long as that one is on average.
const Note = `[{"by":["ClusterGPUPolicy/berth-default"],"rule":"tolerations","path":"/spec/tolerations/2","is":"ec582b1c"},` +
	`{"by":["ClusterGPUPolicy/several-gpus-are-whole","ClusterGPUPolicy/training"],"rule":"node_affinity","path":` +
	`"/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution","is":"d587f5cb"},` +
	`{"by":["ClusterGPUPolicy/training"],"rule":"checkpoint_grace","path":"/spec/terminationGracePeriodSeconds","is":"e49ec846"}]`

var (
	Toleration = corev1.Toleration{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	training   = []corev1.NodeSelectorRequirement{
		{Key: machine + "family", Operator: corev1.NodeSelectorOpExists},
		{Key: machine + "family", Operator: corev1.NodeSelectorOpNotIn, Values: []string{
			"g3", "g3s", "g4dn", "g5", "g5g", "g6", "g6e", "g6f", "g7", "g7e", "gr6", "gr6f", "p2", "p3", "p3dn", "p4d",
		}},
	}
	small    = []corev1.NodeSelectorRequirement{
		{Key: machine + "gpu-name", Operator: corev1.NodeSelectorOpIn, Values: []string{"l4"}},
		{Key: machine + "gpu-memory", Operator: corev1.NodeSelectorOpIn, Values: []string{"22888"}},
	}
	onDemand = corev1.NodeSelectorRequirement{Key: capacity, Operator: corev1.NodeSelectorOpIn, Values: []string{"on-demand", "reserved"}}
	spot     = corev1.NodeSelectorRequirement{Key: capacity, Operator: corev1.NodeSelectorOpIn, Values: []string{"spot"}}
	whole    = []corev1.NodeSelectorRequirement{
		{Key: "nvidia.com/gpu.sharing-strategy", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"time-slicing", "mps"}},
		{Key: "nvidia.com/gpu.slices.gi", Operator: corev1.NodeSelectorOpDoesNotExist},
	}
)

// Wanted is what is to be written into one pod.
type Wanted struct {
	Any      bool
	Tolerate bool
	Require  []corev1.NodeSelectorRequirement // into every required term
	Grace    int64                            // seconds; 0: as it is
	Former   int64                            // seconds, pinned on the probes that have none
	Protect  bool
}

// For a pod as the API server sends it.
func For(pod *corev1.Pod) Wanted {
	gpus := count(pod)
	if gpus == 0 {
		return Wanted{}
	}
	wanted := Wanted{Any: true, Tolerate: !tolerated(pod)}
	job, served := owner(pod)
	switch {
	case job && gpus >= 4:
		wanted.machines(pod, training)
		wanted.capacity(pod, !brief(pod))
		wanted.Protect = pod.Annotations[Protect] == ""
		wanted.grace(pod, 1800)
	case job:
		wanted.capacity(pod, !brief(pod))
		wanted.grace(pod, 120)
	case served && gpus == 1:
		wanted.machines(pod, small)
		wanted.capacity(pod, true)
	}
	if gpus >= 2 {
		wanted.Require = append(wanted.Require, whole...)
	}
	return wanted
}

func (w *Wanted) machines(pod *corev1.Pod, require []corev1.NodeSelectorRequirement) {
	if !says(pod, machine) {
		w.Require = append(w.Require, require...)
	}
}

func (w *Wanted) capacity(pod *corev1.Pod, stays bool) {
	if says(pod, capacity) {
		return
	}
	if stays {
		w.Require = append(w.Require, onDemand)
	} else {
		w.Require = append(w.Require, spot)
	}
}

func (w *Wanted) grace(pod *corev1.Pod, seconds int64) {
	w.Former = corev1.DefaultTerminationGracePeriodSeconds
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		w.Former = *pod.Spec.TerminationGracePeriodSeconds
	}
	if w.Former == corev1.DefaultTerminationGracePeriodSeconds { // another was written by somebody
		w.Grace = seconds
	}
}

// Required gives the author's required terms, or none.
func Required(pod *corev1.Pod) []corev1.NodeSelectorTerm {
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	return affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
}

// Unpinned says whether a probe is to get the former grace period.
func Unpinned(probe *corev1.Probe) bool {
	return probe != nil && probe.TerminationGracePeriodSeconds == nil
}

func count(pod *corev1.Pod) int64 {
	var gpus int64
	for i := range pod.Spec.Containers {
		if limit, found := pod.Spec.Containers[i].Resources.Limits[GPU]; found {
			gpus += limit.Value()
		}
	}
	return gpus
}

func owner(pod *corev1.Pod) (job, served bool) {
	controller := metav1.GetControllerOfNoCopy(pod)
	if controller == nil {
		return false, false
	}
	return controller.Kind == "Job" || controller.Kind == "PyTorchJob", controller.Kind == "ReplicaSet"
}

func brief(pod *corev1.Pod) bool {
	if text, found := pod.Annotations[duration]; found {
		lasts, err := time.ParseDuration(text)
		return err == nil && lasts <= short
	}
	deadline := pod.Spec.ActiveDeadlineSeconds
	return deadline != nil && time.Duration(*deadline)*time.Second <= short
}

func tolerated(pod *corev1.Pod) bool {
	for i := range pod.Spec.Tolerations {
		standing := &pod.Spec.Tolerations[i]
		if standing.Key == Toleration.Key && standing.Operator == Toleration.Operator && standing.TolerationSeconds == nil &&
			(standing.Effect == "" || standing.Effect == Toleration.Effect) {
			return true
		}
	}
	return false
}

// says tells whether the author asked for a label whose key begins so.
func says(pod *corev1.Pod, key string) bool {
	for name := range pod.Spec.NodeSelector {
		if strings.HasPrefix(name, key) {
			return true
		}
	}
	for _, term := range Required(pod) {
		for i := range term.MatchExpressions {
			if strings.HasPrefix(term.MatchExpressions[i].Key, key) {
				return true
			}
		}
	}
	return false
}
