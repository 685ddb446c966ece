"""Talking to Kubernetes: the only folder that imports its client. What it learns goes to whoever it is given.

A call's way out: ``client`` (raw JSON, credentials that are read again) by ``access`` (a kubeconfig, or a pod's account, with ``proxies``)
over a ``transport`` of ``connector`` and ``lookups``; what goes wrong is of ``failures``. An object's way in: ``kinds`` (what is
watched) -> ``listing``, then ``lines`` of a watch, both by ``reading`` (``shallow``) -> ``reflector``, one for each kind, with its
``backoff`` behind the one ``gate`` -> a ``sink``, which is the ``inbox``. Back: the replica that holds the ``lease`` writes ``statuses``
(``searching`` works out what they say, with ``quotas``; ``status`` is the patch) and ``events``.
"""
