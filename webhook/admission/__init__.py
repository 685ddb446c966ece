"""One admission review, from the body of a call to its answer.

``app`` (exactly one answer in all cases) -> ``handlers`` -> ``analysis.reviews`` (the body becomes a review;
``unevaluated_reviews`` answers what cannot be read) -> ``decision_cache``, else
the engine -> the answer. ``parking`` and ``namespace_shares`` decide which calls have to be sent again.
"""
