"""The answer of `berth audit`: its lines, as a table, JSON, CSV or one HTML file."""
