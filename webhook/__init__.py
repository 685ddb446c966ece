"""The process and the wire: the only folder that knows HTTP.

A request's way in: ``servers`` (how many connections a ``port`` has) -> ``channel``, within TLS ``tls`` (bytes) -> ``connection`` (order,
each ``deadline``) -> ``reading`` (llhttp, with ``bodies``) -> an ``http`` call -> ``app`` (one answer whatever happens; ``overload``) ->
``judged``. There: ``review.parse`` -> ``seen`` (what is read of the pod) -> ``decisions``, where one that was decided before is found,
else ``engine.evaluate`` under ``snapshot.facts_for`` -> ``review.answer`` (warnings for their ``audience``, ``evidence`` for the audit
log), kept -> ``metrics`` with ``outcomes``, and ``logs`` with ``log_fields``, sent by ``log_stream``. A workload's goes through
``advise``, a claim's through ``claim_review``.

``serve`` puts the process together: ``settings`` and ``limits``, the two ports with ``health`` on the second, ``upkeep`` with
``following`` for what changes, read by ``sources`` and ``files`` (``yaml_text``, ``json_text``). ``registration`` makes the webhook
configurations that send calls here of ``entries``, with the ``match_conditions`` that keep all other pods away, and ``match_places`` for
workloads without pod templates; ``registered`` tells whether they are in force.
"""
