"""Events (k8s.io/api events/v1)."""

NOTE = 1024
"""The most characters of a note (k8s.io/kubernetes, pkg/apis/core/validation/events.go: NoteLengthLimit)."""
