"""What policies say of the pods that exist, written into the cluster: reports by workload, counts in the statuses of
policies, Events. Written by the holder of a Lease alone, and only where something changed."""
