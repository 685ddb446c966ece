"""Families of findings on nodes and on what makes them, a file each."""
