"""Communication with the API server: the only package that imports the Kubernetes client. Results go to
callbacks.

``client`` makes calls, and ``watch`` lists and follows objects with it. On the replica that holds the Lease the ``reconciler``
writes: the statuses and events of ``status``, and what ``reports`` says of pods that exist. ``certificates`` shares one Secret among
the replicas and publishes its CA.
"""
