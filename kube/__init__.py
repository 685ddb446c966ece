"""What Kubernetes means, knowing nothing of Berth: pure functions and types, each with the Kubernetes file that it follows."""
