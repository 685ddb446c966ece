"""The statuses of policies and the events that the elected replica writes.

``leader_election`` holds a Lease. The ``writer``, a ``cluster.reconciler``, runs the ``computation`` of findings and sends
each that differs as a ``patch``; ``events`` are sent beside it.
"""
