"""Measure anything: start a server on its core, load it in rounds, compare the rounds, write tables and verdicts."""
