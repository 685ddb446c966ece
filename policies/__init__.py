"""The decision: pure functions from a pod and a snapshot of facts to a verdict.

Nothing under this package reads a clock, an environment, a file, a socket or a log, and nothing imports
``kubernetes``, ``webhook``, ``cli`` or ``cluster`` (``tests/test_layers.py`` holds it): it takes text and
mappings, and returns values.

Reading order, as one request goes: ``request`` -> ``pods`` (the pod and its author, as far as they are read) -> ``engine`` ->
``planning`` (what the policies want of this pod, under one snapshot of ``state``, over the rows of ``offers``) -> ``rules`` (edits,
violations with what to type, remarks) -> ``patch`` -> ``verdict``. ``claims`` does the same for a claim.

Where it all comes from: ``catalog``, ``policy`` and ``document``, parsed by ``objects``, and ``facts`` of the cluster. In which queue a
pod waits: ``planning/queues``. ``workloads`` reads templates as the pods they will make. The package ``analysis`` answers everything else.
``messages`` has every sentence; the package ``kube`` reads pods, nodes, amounts and labels as Kubernetes
does; ``lru`` bounds what is remembered, ``work_budget`` what is judged.
"""
