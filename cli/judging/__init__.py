"""The simulation of the two webhooks on a manifest: it is judged, and patched as the API server would patch
it."""
