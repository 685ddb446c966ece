"""What a look at a cluster finds without any policy being installed: pods that wait, runs that may be cut short,
GPUs that are held for little, settings of node pools that hurt. Pure: what was read comes in as ``seen``, each
family of findings has a file of its own, and sentences are made last, by ``wording``. Nothing here answers a review."""
