"""The metrics and the log of a replica; nothing is decided here."""
