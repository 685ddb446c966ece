"""One admission review, from the body of a call to its answer.

``app`` (exactly one answer in all cases) -> ``handlers`` -> ``analysis.reviews`` (``decoding`` reads the body, and the part of it that
a decision reads; ``review`` an AdmissionReview of a pod, with ``unread_reviews`` for what cannot be read) -> ``decision_cache``, else
the engine -> the answer. ``parking`` and ``namespace_shares`` decide which calls have to be sent again.
"""
