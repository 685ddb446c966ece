"""The process and the wire: the only folder that knows HTTP.

A request's way: ``app`` (bytes, limits) -> ``review.parse`` -> ``snapshot.facts_for`` -> ``engine.evaluate`` ->
``review.answer`` -> ``logs``. ``sources`` and ``files`` read what a snapshot is built from; ``serve`` puts it together.
"""
