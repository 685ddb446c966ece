"""What a replica costs that follows an API server with many policies, namespaces and nodes."""
