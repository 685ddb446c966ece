"""The decision: pure functions from a pod and a snapshot of facts to a verdict.

Nothing under this package reads a clock, an environment, a file, a socket or a log, and nothing imports
``kubernetes``, ``webhook``, ``cli`` or ``cluster`` (``tests/test_layers.py`` holds it): it takes text and
mappings, and returns values.

Reading order: ``quantity``, ``pod`` (what came in); ``catalog``, ``policy`` (what is known and wanted);
``offers`` (the table of what nodes offer, as bit sets); ``snapshot`` (all of it, for one moment); ``plan``
(one decision per pod); ``render`` (the decision as node affinity); ``rules/`` (one edit and one check each);
``engine`` (plan, then rules); ``patch`` (edits as JSON Patch); ``verdict`` (what comes out).
"""
