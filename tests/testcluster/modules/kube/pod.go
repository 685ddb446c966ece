package main

import (
	"context"
	"encoding/json"

	"k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-helpers/resource"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/features"
	registry "k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"
)

// created is a pod as the API server stores it, and as kube-scheduler reads it then.
type created struct {
	Requests framework.Resource `json:"requests"`
	Class    v1.PodQOSClass     `json:"class"`
	Ports    []v1.ContainerPort `json:"ports"`
}

// gates: a pod's own resources are defaulted, and decide its QoS class, as in releases before 1.37.
var gates = map[string]bool{
	string(features.PodLevelResourcesFixDefaulting):      false,
	string(features.PodLevelResourcesFixKubeletQOSClass): false,
}

func init() {
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(gates); err != nil {
		panic(err)
	}
}

// pod decodes, defaults and prepares a pod as the API server does when it is created.
func pod(raw json.RawMessage) (any, error) {
	decoded, err := runtime.Decode(legacyscheme.Codecs.UniversalDecoder(core.SchemeGroupVersion), raw)
	if err != nil {
		return nil, err
	}
	stored := decoded.(*core.Pod)
	registry.Strategy.PrepareForCreate(context.Background(), stored)
	var external v1.Pod
	if err := legacyscheme.Scheme.Convert(stored, &external, nil); err != nil {
		return nil, err
	}
	return created{
		Requests: *framework.NewResource(resource.PodRequests(&external, resource.PodResourcesOptions{})),
		Class:    external.Status.QOSClass,
		Ports:    util.GetHostPorts(&external),
	}, nil
}
