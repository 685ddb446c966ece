"""Who may see what: the one-time token of a console on a laptop, and in a cluster sessions, TokenReview and SubjectAccessReview."""
