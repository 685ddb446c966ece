// A handler that the bench compares Berth with, as fast as Go's standard library makes it: net/http, encoding/json into the typed
// structs, the edits hard-coded and the patch made by hand.
package main

import (
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

//go:embed edits.json
var constants []byte
var edits struct {
	Note                   string // as long as Berth's own annotation is on average
	Toleration             corev1.Toleration
	Training, Small, Whole []corev1.NodeSelectorRequirement
	OnDemand, Spot         corev1.NodeSelectorRequirement
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// edit returns the edits that Berth's shipped policies make for the pods of the bench.
func edit(pod *corev1.Pod) (patch []operation) {
	add := func(path string, value any) { patch = append(patch, operation{"add", path, value}) }
	gpus, kind := int64(0), ""
	for _, container := range pod.Spec.Containers {
		limit := container.Resources.Limits["nvidia.com/gpu"]
		gpus += limit.Value()
	}
	if gpus == 0 {
		return nil
	}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		kind = owner.Kind
	}
	isJob := kind == "Job" || kind == "PyTorchJob"
	isTraining, isServer := isJob && gpus >= 4, kind == "ReplicaSet" && gpus == 1
	if !slices.Contains(pod.Spec.Tolerations, edits.Toleration) {
		add("/spec/tolerations", append(pod.Spec.Tolerations, edits.Toleration))
	}
	keys := slices.Collect(maps.Keys(pod.Spec.NodeSelector))
	for _, term := range terms(pod) {
		for _, expression := range term.MatchExpressions {
			keys = append(keys, expression.Key)
		}
	}
	isPlaced := slices.ContainsFunc(keys, func(key string) bool { return strings.HasPrefix(key, "karpenter.k8s.aws/instance-") })
	var require []corev1.NodeSelectorRequirement
	if isTraining && !isPlaced {
		require = append(require, edits.Training...)
	} else if isServer && !isPlaced {
		require = append(require, edits.Small...)
	}
	if (isJob || isServer) && !slices.Contains(keys, "karpenter.sh/capacity-type") {
		lasts, err := time.ParseDuration(pod.Annotations["berth.dev/expected-duration"])
		if isJob && err == nil && lasts <= 2*time.Hour {
			require = append(require, edits.Spot)
		} else {
			require = append(require, edits.OnDemand)
		}
	}
	if gpus >= 2 {
		require = append(require, edits.Whole...)
	}
	if len(require) > 0 {
		if len(terms(pod)) == 0 {
			selector := &corev1.NodeSelector{NodeSelectorTerms: make([]corev1.NodeSelectorTerm, 1)}
			pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: selector}}
		}
		for i := range terms(pod) {
			terms(pod)[i].MatchExpressions = append(terms(pod)[i].MatchExpressions, require...)
		}
		add("/spec/affinity", pod.Spec.Affinity)
	}
	if former := pod.Spec.TerminationGracePeriodSeconds; isJob && (former == nil || *former == corev1.DefaultTerminationGracePeriodSeconds) {
		add("/spec/terminationGracePeriodSeconds", map[bool]int{true: 1800, false: 120}[isTraining])
		for i, container := range pod.Spec.Containers {
			for name, probe := range map[string]*corev1.Probe{"livenessProbe": container.LivenessProbe, "startupProbe": container.StartupProbe} {
				if probe != nil && probe.TerminationGracePeriodSeconds == nil {
					path := fmt.Sprintf("/spec/containers/%d/%s/terminationGracePeriodSeconds", i, name)
					add(path, corev1.DefaultTerminationGracePeriodSeconds)
				}
			}
		}
	}
	annotations := map[string]string{"berth.dev/applied": edits.Note}
	if isTraining {
		annotations["karpenter.sh/do-not-disrupt"] = "true"
	}
	maps.Copy(annotations, pod.Annotations)
	add("/metadata/annotations", annotations)
	return patch
}

func terms(pod *corev1.Pod) []corev1.NodeSelectorTerm {
	if affinity := pod.Spec.Affinity; affinity != nil && affinity.NodeAffinity != nil {
		if selector := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; selector != nil {
			return selector.NodeSelectorTerms
		}
	}
	return nil
}

func mutate(writer http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(writer, request.Body, 7<<20))
	review, pod := admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{}}, &corev1.Pod{}
	if err == nil {
		err = json.Unmarshal(body, &review)
	}
	if err == nil {
		err = json.Unmarshal(review.Request.Object.Raw, pod)
	}
	if err != nil {
		http.Error(writer, err.Error(), http.StatusBadRequest)
		return
	}
	answer := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if operations := edit(pod); operations != nil {
		kind := admissionv1.PatchTypeJSONPatch
		answer.PatchType = &kind
		answer.Patch, err = json.Marshal(operations)
		must(err)
	}
	writer.Header().Set("Content-Type", "application/json")
	must(json.NewEncoder(writer).Encode(admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: answer}))
}

func main() {
	listen := flag.String("listen", "127.0.0.1:9443", "HOST:PORT")
	cert := flag.String("cert", "tls.crt", "serving certificate, PEM")
	key := flag.String("key", "tls.key", "its key, PEM")
	flag.Parse()
	must(json.Unmarshal(constants, &edits))
	http.HandleFunc("/mutate", mutate)
	server := &http.Server{Addr: *listen, ReadHeaderTimeout: 32 * time.Second, IdleTimeout: 90 * time.Second}
	log.Fatal(server.ListenAndServeTLS(*cert, *key))
}

func must(err error) {
	if err != nil {
		log.Panic(err)
	}
}
