// A handler as fast as Go's standard library makes it: net/http, encoding/json into the typed structs, and a patch made by hand.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	"berth.dev/bench/rivals/edits"
)

const (
	mostBytes = 7 << 20 // as controller-runtime
	required  = "requiredDuringSchedulingIgnoredDuringExecution"
)

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

type patch []operation

func (p *patch) add(path string, value any) {
	*p = append(*p, operation{Op: "add", Path: path, Value: value})
}

func mutate(writer http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(writer, request.Body, mostBytes))
	if err != nil {
		http.Error(writer, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	review := admissionv1.AdmissionReview{}
	if err := json.Unmarshal(body, &review); err != nil || review.Request == nil {
		http.Error(writer, "not an AdmissionReview", http.StatusBadRequest)
		return
	}
	answer, err := respond(review.Request)
	if err != nil {
		http.Error(writer, err.Error(), http.StatusBadRequest)
		return
	}
	encoded, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: answer})
	if err != nil {
		http.Error(writer, err.Error(), http.StatusInternalServerError)
		return
	}
	writer.Header().Set("Content-Type", "application/json")
	_, _ = writer.Write(encoded)
}

func respond(request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	pod := &corev1.Pod{}
	if err := json.Unmarshal(request.Object.Raw, pod); err != nil {
		return nil, err
	}
	answer := &admissionv1.AdmissionResponse{UID: request.UID, Allowed: true}
	wanted := edits.For(pod)
	if !wanted.Any {
		return answer, nil
	}
	encoded, err := json.Marshal(patchOf(pod, wanted))
	kind := admissionv1.PatchTypeJSONPatch
	answer.Patch, answer.PatchType = encoded, &kind
	return answer, err
}

func patchOf(pod *corev1.Pod, wanted edits.Wanted) patch {
	out := make(patch, 0, 16)
	if wanted.Tolerate {
		if pod.Spec.Tolerations == nil {
			out.add("/spec/tolerations", []corev1.Toleration{edits.Toleration})
		} else {
			out.add("/spec/tolerations/-", edits.Toleration)
		}
	}
	out.require(pod, wanted.Require)
	if wanted.Grace > 0 {
		out.add("/spec/terminationGracePeriodSeconds", wanted.Grace)
		for i := range pod.Spec.Containers {
			container := &pod.Spec.Containers[i]
			out.pin(i, "livenessProbe", container.LivenessProbe, wanted.Former)
			out.pin(i, "startupProbe", container.StartupProbe, wanted.Former)
		}
	}
	out.annotate(pod, wanted)
	return out
}

func (p *patch) require(pod *corev1.Pod, expressions []corev1.NodeSelectorRequirement) {
	if len(expressions) == 0 {
		return
	}
	for i, term := range edits.Required(pod) {
		at := fmt.Sprintf("/spec/affinity/nodeAffinity/%s/nodeSelectorTerms/%d/matchExpressions", required, i)
		if term.MatchExpressions == nil {
			p.add(at, expressions)
			continue
		}
		for _, expression := range expressions {
			p.add(at+"/-", expression)
		}
	}
	if len(edits.Required(pod)) > 0 {
		return
	}
	selector := &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: expressions}}}
	switch affinity := pod.Spec.Affinity; {
	case affinity == nil:
		p.add("/spec/affinity", corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: selector}})
	case affinity.NodeAffinity == nil:
		p.add("/spec/affinity/nodeAffinity", corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: selector})
	default:
		p.add("/spec/affinity/nodeAffinity/"+required, selector)
	}
}

func (p *patch) pin(container int, name string, probe *corev1.Probe, seconds int64) {
	if edits.Unpinned(probe) {
		p.add(fmt.Sprintf("/spec/containers/%d/%s/terminationGracePeriodSeconds", container, name), seconds)
	}
}

func (p *patch) annotate(pod *corev1.Pod, wanted edits.Wanted) {
	notes := map[string]string{edits.Applied: edits.Note}
	if wanted.Protect {
		notes[edits.Protect] = "true"
	}
	if pod.Annotations == nil {
		p.add("/metadata/annotations", notes)
		return
	}
	for key, value := range notes {
		p.add("/metadata/annotations/"+strings.ReplaceAll(key, "/", "~1"), value)
	}
}

func main() {
	listen := flag.String("listen", "127.0.0.1:9443", "HOST:PORT")
	cert := flag.String("cert", "tls.crt", "serving certificate, PEM")
	key := flag.String("key", "tls.key", "its key, PEM")
	flag.Parse()
	mux := http.NewServeMux()
	mux.HandleFunc("/mutate", mutate)
	server := &http.Server{Addr: *listen, Handler: mux, ReadHeaderTimeout: 32 * time.Second, IdleTimeout: 90 * time.Second}
	log.Fatal(server.ListenAndServeTLS(*cert, *key))
}
