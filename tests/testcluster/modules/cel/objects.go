package main

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	// What they are decoded, defaulted and converted with.
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
)

var interfaces = admission.NewObjectInterfacesFromScheme(legacyscheme.Scheme)

// decode gives a built-in kind in its internal version with defaults, as admission gets it; a custom resource unchanged.
func decode(raw json.RawMessage, typed bool) (runtime.Object, error) {
	if absent(raw) {
		return nil, nil
	}
	if typed {
		return runtime.Decode(legacyscheme.Codecs.UniversalDecoder(), raw)
	}
	object := &unstructured.Unstructured{}
	return object, object.UnmarshalJSON(raw)
}

// attributes are the request as every admission plugin sees it, and its objects in the version of the request.
func attributes(request Request) (*admission.VersionedAttributes, error) {
	object, err := decode(request.Object, request.Typed)
	if err != nil {
		return nil, err
	}
	old, err := decode(request.OldObject, request.Typed)
	if err != nil {
		return nil, err
	}
	var meta struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(request.Object, &meta); err != nil {
		return nil, err
	}
	kind := request.Resource.GroupVersion().WithKind(meta.Kind)
	plain := admission.NewAttributesRecord(
		object, old, kind, request.Namespace, "", request.Resource, request.Subresource,
		admission.Operation(request.Operation), nil, false, &user.DefaultInfo{Name: request.User, Groups: request.Groups},
	)
	return admission.NewVersionedAttributes(plain, kind, interfaces)
}
