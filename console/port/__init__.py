"""The port of the console: its certificate, and uvicorn within bounds on what a caller may cost; it knows nothing of pages."""
