"""What is sent to a server, and the client that sends it at fixed times: bodies of reviews, workloads, sets of policies."""
