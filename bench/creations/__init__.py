"""What a pod's creation costs on a real API server: with Berth, with native policies, with handlers in Go."""
