// A handler as authors of webhooks write it, on controller-runtime: the pod is decoded, changed and encoded, and the library
// makes the patch from the difference.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"strconv"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"berth.dev/bench/rivals/edits"
)

type handler struct{ decoder admission.Decoder }

func (h *handler) Handle(_ context.Context, request admission.Request) admission.Response {
	pod := &corev1.Pod{}
	if err := h.decoder.Decode(request, pod); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	wanted := edits.For(pod)
	if !wanted.Any {
		return admission.Allowed("")
	}
	apply(pod, wanted)
	changed, err := json.Marshal(pod)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(request.Object.Raw, changed)
}

func apply(pod *corev1.Pod, wanted edits.Wanted) {
	if wanted.Tolerate {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, edits.Toleration)
	}
	require(pod, wanted.Require)
	if wanted.Grace > 0 {
		pod.Spec.TerminationGracePeriodSeconds = &wanted.Grace
		for i := range pod.Spec.Containers {
			for _, probe := range []*corev1.Probe{pod.Spec.Containers[i].LivenessProbe, pod.Spec.Containers[i].StartupProbe} {
				if edits.Unpinned(probe) {
					probe.TerminationGracePeriodSeconds = &wanted.Former
				}
			}
		}
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	if wanted.Protect {
		pod.Annotations[edits.Protect] = "true"
	}
	pod.Annotations[edits.Applied] = edits.Note
}

func require(pod *corev1.Pod, expressions []corev1.NodeSelectorRequirement) {
	if len(expressions) == 0 {
		return
	}
	if terms := edits.Required(pod); len(terms) > 0 {
		for i := range terms {
			terms[i].MatchExpressions = append(terms[i].MatchExpressions, expressions...)
		}
		return
	}
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	if pod.Spec.Affinity.NodeAffinity == nil {
		pod.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: expressions}},
	}
}

func main() {
	listen := flag.String("listen", "127.0.0.1:9443", "HOST:PORT")
	cert := flag.String("cert", "tls.crt", "serving certificate, PEM")
	key := flag.String("key", "tls.key", "its key, PEM, in the same folder")
	flag.Parse()
	ctrllog.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	host, text, err := net.SplitHostPort(*listen)
	utilruntime.Must(err)
	port, err := strconv.Atoi(text)
	utilruntime.Must(err)
	server := webhook.NewServer(webhook.Options{
		Host: host, Port: port, CertDir: filepath.Dir(*cert), CertName: filepath.Base(*cert), KeyName: filepath.Base(*key),
	})
	server.Register("/mutate", &webhook.Admission{Handler: &handler{decoder: admission.NewDecoder(scheme)}})
	log.Fatal(server.Start(context.Background()))
}
