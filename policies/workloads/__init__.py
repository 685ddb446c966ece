"""Workloads as the pods that they will make: a Deployment, a Job, a PyTorchJob judged before any pod of it is there.

``templates`` finds the pod templates (where they are is catalog data), ``shape`` tells whether one can be read, ``made``
builds the pod that the controller makes from it, and ``pods`` is all three for one workload. Where a kind has no templates, ``described``
puts one together from the fields in which it says what its pods are like, ``bases`` lays it over the one of another object, as
``strategic`` merges do, and ``parts`` knows where in the manifest each piece of it stands. ``held`` finds what asks for an accelerator in
an object of any kind. What cannot be read is an ``InputError`` with its path, never a guess.
"""
