"""List and watch of the objects of each kind.

``kinds`` defines what is watched. A ``reflector`` for each kind runs its ``listing``, then a watch, with its
own ``backoff`` and the shared ``connectivity``; ``decoder`` parses both. It writes into a ``store``, which is
the ``delta_queue``.
"""
