"""What policies say of pods that exist: pure, of pods as the API server stores them. Nothing here answers a
review."""
