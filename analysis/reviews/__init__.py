"""AdmissionReviews in both directions: bytes to what is asked, and a verdict to the answer, for pods, claims and workloads."""
