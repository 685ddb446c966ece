// answering says on :8080 which pod it is; on :8443, where it is given a certificate, it admits every object with a warning that says so.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
)

type review struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Request    map[string]any `json:"request,omitempty"`
	Response   map[string]any `json:"response,omitempty"`
}

func main() {
	pod, err := os.Hostname()
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("/", func(writer http.ResponseWriter, _ *http.Request) { fmt.Fprintln(writer, pod) })
	http.HandleFunc("/admit", func(writer http.ResponseWriter, request *http.Request) {
		var asked review
		if err := json.NewDecoder(request.Body).Decode(&asked); err != nil {
			http.Error(writer, err.Error(), http.StatusBadRequest)
			return
		}
		response := map[string]any{"uid": asked.Request["uid"], "allowed": true, "warnings": []string{"answered by " + pod}}
		json.NewEncoder(writer).Encode(review{APIVersion: asked.APIVersion, Kind: asked.Kind, Response: response})
	})
	if certificate := os.Getenv("CERTIFICATE"); certificate != "" {
		go func() { log.Fatal(http.ListenAndServeTLS(":8443", certificate+"/tls.crt", certificate+"/tls.key", nil)) }()
	}
	log.Print("serving")
	log.Fatal(http.ListenAndServe(":8080", nil))
}
