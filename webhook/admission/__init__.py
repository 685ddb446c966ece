"""One admission review, from the body of a call to its answer.

``app`` (exactly one answer in all cases) -> ``handlers`` -> ``decoding`` (the body, and the part of it that a
decision reads) -> ``review`` (with ``unread_reviews`` for what cannot be read) -> ``decision_cache``, else
the engine -> the answer, with ``warnings`` and ``audit_annotations``. A workload goes through
``workload_advice``, a claim through ``claim_review``; ``parking`` and ``namespace_shares`` decide
which calls have to be sent again.
"""
