package main

import (
	"context"
	"fmt"

	v1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/generic"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/admissionregistration"
	"k8s.io/kubernetes/pkg/apis/admissionregistration/validation"
)

// variables are those that the API server declares for a webhook's conditions.
var variables = cel.OptionalVariableDeclarations{HasAuthorizer: true}

// oldest is the first release whose matchConditions are stable: what it lacks, a condition may not use.
var oldest = version.MajorMinor(1, 30)

type judge struct {
	plugin *generic.Webhook
	hooks  []webhook.WebhookAccessor
	costs  map[string]cel.ConditionEvaluator
}

func newJudge(registration Registration) (*judge, []string, error) {
	plugin, err := newPlugin(registration.Namespaces)
	if err != nil {
		return nil, nil, err
	}
	made := &judge{plugin: plugin, costs: map[string]cel.ConditionEvaluator{}}
	invalid, err := made.register(registration)
	if err != nil {
		return nil, nil, err
	}
	compiler := cel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	old := cel.NewCompiler(environment.MustBaseEnvSet(oldest))
	for _, hook := range made.hooks {
		expressions := expressionsOf(hook)
		made.costs[hook.GetName()] = compiler.CompileCondition(expressions, variables, environment.StoredExpressions)
		for _, expression := range expressions {
			if result := old.CompileCELExpression(expression, variables, environment.NewExpressions); result.Error != nil {
				invalid = append(invalid, fmt.Sprintf("%s: on Kubernetes %s: %s", hook.GetName(), oldest, result.Error))
			}
		}
	}
	return made, invalid, nil
}

// newPlugin is the part of kube-apiserver that calls webhooks, with its cache of namespaces filled and nobody to call.
func newPlugin(namespaces []string) (*generic.Webhook, error) {
	source := func(informers.SharedInformerFactory, sets.Set[schema.GroupResource]) generic.Source { return nil }
	dispatcher := func(*webhookutil.ClientManager) generic.Dispatcher { return nil }
	plugin, err := generic.NewWebhook(admission.NewHandler(admission.Create, admission.Update), nil, source, dispatcher)
	if err != nil {
		return nil, err
	}
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	for _, name := range namespaces {
		labels := map[string]string{corev1.LabelMetadataName: name}
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
		if err := factory.Core().V1().Namespaces().Informer().GetIndexer().Add(namespace); err != nil {
			return nil, err
		}
	}
	plugin.SetExternalKubeClientSet(client)
	plugin.SetExternalKubeInformerFactory(factory)
	return plugin, nil
}

// register decodes both manifests strictly, validates them, and keeps their webhooks in the order of calls.
func (j *judge) register(registration Registration) ([]string, error) {
	var mutating admissionregistration.MutatingWebhookConfiguration
	var validating admissionregistration.ValidatingWebhookConfiguration
	if err := decodeInto(registration.Mutating, &mutating); err != nil {
		return nil, err
	}
	if err := decodeInto(registration.Validating, &validating); err != nil {
		return nil, err
	}
	var invalid []string
	for _, err := range append(
		validation.ValidateMutatingWebhookConfiguration(&mutating), validation.ValidateValidatingWebhookConfiguration(&validating)...,
	) {
		invalid = append(invalid, err.Error())
	}
	var first v1.MutatingWebhookConfiguration
	var second v1.ValidatingWebhookConfiguration
	if err := legacyscheme.Scheme.Convert(&mutating, &first, nil); err != nil {
		return nil, err
	}
	if err := legacyscheme.Scheme.Convert(&validating, &second, nil); err != nil {
		return nil, err
	}
	for i := range first.Webhooks {
		j.hooks = append(j.hooks, webhook.NewMutatingWebhookAccessor(first.Webhooks[i].Name, first.Name, &first.Webhooks[i]))
	}
	for i := range second.Webhooks {
		j.hooks = append(j.hooks, webhook.NewValidatingWebhookAccessor(second.Webhooks[i].Name, second.Name, &second.Webhooks[i]))
	}
	return invalid, nil
}

// decodeInto denies fields that do not exist, which the API server would drop with a warning.
func decodeInto(raw []byte, into runtime.Object) error {
	_, _, err := serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict).UniversalDecoder().Decode(raw, nil, into)
	return err
}

func expressionsOf(hook webhook.WebhookAccessor) []cel.ExpressionAccessor {
	var expressions []cel.ExpressionAccessor
	for _, condition := range hook.GetMatchConditions() {
		found := matchconditions.MatchCondition(condition)
		expressions = append(expressions, &found)
	}
	return expressions
}

func (j *judge) answer(ctx context.Context, request Request) Answer {
	attributes, err := attributes(request)
	if err != nil {
		return Answer{Undecodable: err.Error()}
	}
	answer := Answer{Called: []string{}, Errors: map[string]string{}, Object: attributes.VersionedObject.Object()}
	for _, hook := range j.hooks {
		invocation, err := j.plugin.ShouldCallHook(ctx, hook, attributes.Attributes, interfaces, asRequested{attributes})
		switch {
		case err != nil:
			answer.Errors[hook.GetName()] = err.Error()
		case invocation != nil:
			answer.Called = append(answer.Called, hook.GetName())
		}
	}
	j.conditions(ctx, request, attributes, &answer)
	return answer
}

// conditions evaluates each condition by itself: ShouldCallHook says nothing of an error where failurePolicy is Ignore or
// another condition is false, and nothing of the cost.
func (j *judge) conditions(ctx context.Context, request Request, attributes *admission.VersionedAttributes, answer *Answer) {
	review := cel.CreateAdmissionRequest(
		attributes.Attributes, metav1.GroupVersionResource(request.Resource), metav1.GroupVersionKind(attributes.VersionedKind),
	)
	if request.Cost {
		answer.Cost = map[string]int64{}
	}
	for name, evaluator := range j.costs {
		results, left, err := evaluator.ForInput(
			ctx, attributes, review, cel.OptionalVariableBindings{}, nil, celconfig.RuntimeCELCostBudgetMatchConditions,
		)
		if err != nil {
			answer.Errors[name] = err.Error()
		}
		for _, result := range results {
			if result.Error != nil {
				answer.Errors[name] = result.Error.Error()
			}
		}
		if request.Cost {
			answer.Cost[name] = celconfig.RuntimeCELCostBudgetMatchConditions - left
		}
	}
}

// asRequested: a webhook that is registered for the version of the request gets that version.
type asRequested struct{ *admission.VersionedAttributes }

func (a asRequested) VersionedAttribute(schema.GroupVersionKind) (*admission.VersionedAttributes, error) {
	return a.VersionedAttributes, nil
}
