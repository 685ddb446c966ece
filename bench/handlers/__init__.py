"""What a review costs over TLS: Berth beside handlers with the same edits hard-coded. No API server takes part."""
