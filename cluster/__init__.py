"""Communication with the API server: the only package that imports the Kubernetes client. Results go to
callbacks.

``client`` makes calls, ``watch`` lists and follows objects with it, ``status`` writes the findings of the replica that
holds the Lease into statuses and events, and ``certificates`` shares one Secret among the replicas and publishes its CA.
"""
