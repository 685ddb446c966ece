"""Activation of policies, facts and certificates while calls are answered: from files (``file_watcher``) or a
cluster (``cluster_watcher``, ``shared_certificate``).

``file_watcher`` asks ``changed_files``, which loads the ``sources`` named on the command line again;
``cluster_watcher`` receives changes from the API server. Both pass them to an updater (``policies.state``)
and end in ``activation``, the one swap. ``registration_check`` asks the API server whether it calls here.
"""
