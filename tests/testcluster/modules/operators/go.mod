// Custom resource definitions of operators: each module is fetched for its files alone, so nothing here is built.
module berth.dev/testcluster/operators

go 1.26

require (
	github.com/argoproj/argo-rollouts v1.8.3
	github.com/argoproj/argo-workflows/v3 v3.7.4
	github.com/kserve/kserve v0.17.0
	github.com/kubeflow/mpi-operator v0.6.0
	github.com/kubeflow/spark-operator/v2 v2.4.0
	github.com/kubeflow/trainer/v2 v2.2.0
	github.com/kubeflow/training-operator v1.8.1
	github.com/openkruise/kruise v1.8.0
	github.com/ray-project/kuberay/ray-operator v1.4.2
	github.com/tektoncd/pipeline v1.6.0
	knative.dev/serving v0.46.0
	sigs.k8s.io/jobset v0.10.1
	sigs.k8s.io/lws v0.8.0
)
