// Two handlers that the bench compares Berth with, with the same edits hard-coded:
//
//	-handler controller-runtime   as authors of webhooks write it: the library makes the patch from the difference of two pods
//	-handler net/http             the standard library alone, the patch made by hand
package main

import (
	"context"
	"encoding/json"
	"flag"
	"io"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const mostBytes = 7 << 20 // as controller-runtime

type handler struct{ decoder admission.Decoder }

func (h *handler) Handle(_ context.Context, request admission.Request) admission.Response {
	pod := &corev1.Pod{}
	if err := h.decoder.Decode(request, pod); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if edit(pod) == nil {
		return admission.Allowed("")
	}
	changed, err := json.Marshal(pod)
	must(err)
	return admission.PatchResponseFromRaw(request.Object.Raw, changed)
}

func mutate(writer http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(writer, request.Body, mostBytes))
	if err != nil {
		http.Error(writer, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	review, pod := admissionv1.AdmissionReview{}, &corev1.Pod{}
	if err = json.Unmarshal(body, &review); err == nil && review.Request != nil {
		err = json.Unmarshal(review.Request.Object.Raw, pod)
	}
	if err != nil || review.Request == nil {
		http.Error(writer, "not an AdmissionReview of a pod", http.StatusBadRequest)
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
	name := flag.String("handler", "net/http", "net/http or controller-runtime")
	listen := flag.String("listen", "127.0.0.1:9443", "HOST:PORT")
	cert := flag.String("cert", "tls.crt", "serving certificate, PEM")
	key := flag.String("key", "tls.key", "its key, PEM, in the same folder")
	flag.Parse()
	if *name == "net/http" {
		mux := http.NewServeMux()
		mux.HandleFunc("/mutate", mutate)
		server := &http.Server{Addr: *listen, Handler: mux, ReadHeaderTimeout: 32 * time.Second, IdleTimeout: 90 * time.Second}
		log.Fatal(server.ListenAndServeTLS(*cert, *key))
	}
	ctrllog.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	must(corev1.AddToScheme(scheme))
	host, text, err := net.SplitHostPort(*listen)
	must(err)
	port, err := strconv.Atoi(text)
	must(err)
	server := webhook.NewServer(webhook.Options{
		Host: host, Port: port, CertDir: filepath.Dir(*cert), CertName: filepath.Base(*cert), KeyName: filepath.Base(*key),
	})
	server.Register("/mutate", &webhook.Admission{Handler: &handler{decoder: admission.NewDecoder(scheme)}})
	log.Fatal(server.Start(context.Background()))
}

func must(err error) {
	if err != nil {
		log.Panic(err)
	}
}
