"""The process and the wire: the only folder that knows HTTP.

A request's way: ``connection`` (bytes, deadlines) -> ``app`` (limits, one answer whatever happens) -> ``review.parse`` ->
``snapshot.facts_for`` -> ``engine.evaluate`` -> ``review.answer`` (warnings for their ``audience``, ``evidence`` for the audit log) ->
``metrics``, and ``logs`` with ``log_fields``. A workload's goes through ``advise``. ``serve`` puts the process together: ``settings`` and
``limits``, ``servers`` for the two ports, ``health`` on the second, ``upkeep`` with ``following`` for what changes, read by ``sources``
and ``files``. ``registration`` makes the webhook configurations that send calls here, with the ``match_conditions`` that keep all other
pods away.
"""
