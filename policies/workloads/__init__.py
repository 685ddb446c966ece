"""Turn workloads into the pods that they will make: a Deployment, a Job, a PyTorchJob is judged before any
pod of it exists.

``templates`` finds the pod templates (their paths are catalog data), ``pod_schema`` checks that one can be
read, ``kube.templates`` builds the pod that the controller makes from it, and ``pods`` does all three for one
workload. If a kind has no templates, ``described`` assembles one from the fields in which its manifest
describes the pods, ``pods`` lays it over the template of another object, as strategic merge patches do,
and ``parts`` maps each piece of it to its place in the manifest. ``held`` finds what requests an accelerator
in an object of any kind. What cannot be read is an ``InputError`` with its path, never a guess.
"""
