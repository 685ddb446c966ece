"""Calls to the API server, as raw JSON.

``api_client`` makes the calls with the credentials of ``access`` (a kubeconfig, or a pod's service account:
``in_cluster``) over a ``transport`` on the ``connector``. ``documents.json_depth`` parses an
answer as a whole, ``line_stream`` splits one into lines. Failures are raised as one of ``errors``; ``new_errors``
decides which to log.
"""
