"""The certificates that all replicas share: one Secret, and the registration that has to trust them.

``follower`` is the loop, of which there are two kinds: ``keeper`` makes and renews the certificates itself,
``reader`` takes those of somebody else. ``secret_store`` reads and writes the Secret, ``registrations`` the
``caBundle`` of our two webhook configurations, and ``bell`` wakes the loop when one of them has changed.
"""
