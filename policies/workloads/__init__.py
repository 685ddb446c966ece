"""Workloads as the pods that they will make: a Deployment, a Job, a PyTorchJob judged before any pod of it is there.

``templates`` finds the pod templates (where they are is catalog data), ``shape`` tells whether one can be read, ``made``
builds the pod that the controller makes from it, and ``pods`` is all three for one workload. What cannot be read is an
``InputError`` with its path, never a guess.
"""
