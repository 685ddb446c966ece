// Custom resource definitions of what an installation may stand beside: each module is fetched for its files alone, so nothing here is built.
module berth.dev/tests/testcluster/neighbours

go 1.26

require (
	github.com/cert-manager/cert-manager v1.21.2
	github.com/prometheus-operator/prometheus-operator v0.85.0
)
