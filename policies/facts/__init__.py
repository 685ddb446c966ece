"""Facts about a cluster, as its objects have them: ``cluster_facts`` reads what matters of each, ``places`` what a node offers,
``offered_devices`` how, ``device_requests`` what claims ask for; ``platform_detection`` derives the platforms. No policy is known here."""
