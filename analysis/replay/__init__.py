"""What was decided of pods then, what is decided of them now, and how the two differ: pure, of records as they
were read. Nothing here answers a review."""
