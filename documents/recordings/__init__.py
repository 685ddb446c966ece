"""Recordings, such as audit logs: large, compressed, rotated, cut anywhere. They are read in pieces, in bounded memory,
and what cannot be read is told."""
