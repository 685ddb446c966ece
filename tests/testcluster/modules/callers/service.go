package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/uuid"
	webhookrequest "k8s.io/apiserver/pkg/admission/plugin/webhook/request"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
)

// service is the webhook as a webhook configuration names it: a Service, its path and its caBundle.
type service struct {
	config  webhook.ClientConfig
	request admissionv1.AdmissionRequest
	timeout time.Duration
	idle    time.Duration
	tally   *Tally

	mu    sync.Mutex
	ready []string
}

func newService(o options, tally *Tally) (*service, error) {
	ca, err := os.ReadFile(o.ca)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(o.review)
	if err != nil {
		return nil, err
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(text, &review); err != nil {
		return nil, fmt.Errorf("%s: %w", o.review, err)
	}
	if review.Request == nil {
		return nil, fmt.Errorf("%s has no request", o.review)
	}
	s := &service{request: *review.Request, timeout: o.timeout, idle: o.idle, tally: tally}
	s.config = webhook.ClientConfig{
		Name:     "mutate.pods.berth.dev",
		CABundle: ca,
		Service:  &webhook.ClientConfigService{Name: "berth", Namespace: "berth-system", Path: o.path, Port: 443},
	}
	s.set(o.endpoints)
	return s, nil
}

func (s *service) set(endpoints string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = strings.Split(endpoints, ",")
}

// ResolveEndpoint is asked at every call (before Kubernetes 1.37: at every dial), as kube-apiserver's endpoints resolver is: one of the
// ready addresses, by chance.
func (s *service) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &url.URL{Scheme: "https", Host: s.ready[rand.IntN(len(s.ready))]}, nil
}

// client makes one with a connection pool of its own.
func (s *service) client() (*rest.RESTClient, error) {
	manager, err := webhook.NewClientManager([]schema.GroupVersion{admissionv1.SchemeGroupVersion}, admissionv1.AddToScheme)
	if err != nil {
		return nil, err
	}
	unauthenticated, err := webhook.NewDefaultAuthenticationInfoResolver("")
	if err != nil {
		return nil, err
	}
	manager.SetAuthenticationInfoResolver(unauthenticated)
	manager.SetAuthenticationInfoResolverWrapper(s.counted)
	manager.SetServiceResolver(s)
	if err := manager.Validate(); err != nil {
		return nil, err
	}
	return manager.HookClient(s.config)
}

// counted counts the dials, and replaces the transport's idle time of 90 s if -idle is set. Its own dialer also gives each client its own
// connection pool.
func (s *service) counted(inner webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
	return &webhook.AuthenticationInfoResolverDelegator{
		ClientConfigForFunc: inner.ClientConfigFor,
		ClientConfigForServiceFunc: func(name, namespace string, port int) (*rest.Config, error) {
			config, err := inner.ClientConfigForService(name, namespace, port)
			if err != nil {
				return nil, err
			}
			config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				s.tally.dialled()
				return new(net.Dialer).DialContext(ctx, network, address)
			}
			if s.idle != 0 {
				config.Wrap(func(transport http.RoundTripper) http.RoundTripper {
					innermost(transport).IdleConnTimeout = s.idle
					return transport
				})
			}
			return config, nil
		},
	}
}

func innermost(transport http.RoundTripper) *http.Transport {
	for {
		wrapper, wraps := transport.(utilnet.RoundTripperWrapper)
		if !wraps {
			return transport.(*http.Transport)
		}
		transport = wrapper.WrappedRoundTripper()
	}
}

// call does what callAttrMutatingHook of apiserver/pkg/admission/plugin/webhook/mutating does with its client, and counts.
func (s *service) call(client *rest.RESTClient) {
	asked := s.request
	asked.UID = types.UID(uuid.NewUUID())
	response := &admissionv1.AdmissionReview{}
	attempts := 0
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { attempts++ }})
	review := &admissionv1.AdmissionReview{Request: &asked}
	review.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))

	begun := time.Now()
	err := client.Post().Body(review).Timeout(s.timeout).Do(ctx).Into(response)
	if err == nil {
		_, err = webhookrequest.VerifyAdmissionResponse(asked.UID, true, response)
	}
	s.tally.called(err, attempts, time.Since(begun))
}

// text of an error, without the ports and the path that differ from call to call.
func text(err error) string {
	var network *net.OpError
	if errors.As(err, &network) {
		return network.Op + ": " + network.Err.Error()
	}
	var inner *url.Error
	if errors.As(err, &inner) {
		return inner.Err.Error()
	}
	return err.Error()
}
