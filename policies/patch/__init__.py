"""Edits as RFC 6902 operations, JSON trees by their paths, and the record of what was written."""
