"""The statuses of policies and the events that the elected replica writes.

``leader_election`` holds a Lease. The ``writer`` runs the ``computation`` of findings, asks
the ``write_history`` which statuses to write, and sends each as a ``patch``; ``events`` are sent beside it.
"""
