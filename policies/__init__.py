"""The decision: pure functions from a pod and a snapshot of facts to a verdict.

Nothing under this package reads a clock, an environment, a file, a socket or a log, and nothing imports
``kubernetes``, ``webhook``, ``cli`` or ``cluster`` (``tests/test_layers.py`` holds it): it takes text and
mappings, and returns values.

Reading order, as one request goes:

- what came in: ``request``, ``extract`` (the part of a pod that is read), ``work`` (how much there is to judge), ``pod``, ``qos``,
  ``quantity``, ``duration``;
  what comes out: ``verdict``
- what is known and wanted: ``catalog``, ``policy`` (its table, parser and reference are ``objects``), ``cluster_facts``
- as sets of rows: ``offers`` (with ``readings``, other names of values), ``hosts`` and ``tables`` (built once), ``machine_fields`` and
  ``compiled`` (policies as sets), ``snapshot`` (all of it, for one moment; what is remembered under it is bounded by ``kept``)
- in a cluster: ``stored`` (one object, and what of it acts), ``living`` (one snapshot after another), ``detect`` (what nodes tell of
  platforms)
- one decision per pod: ``engine``, ``plan`` (with ``devices``, ``count``, ``actor``, ``author``, ``demands``, ``wishes``, ``placement``),
  ``choose`` (with ``silence``, ``slices``)
- written down or refused: ``rules``, ``terms``, ``sayable``, ``render``, ``known_node``, ``refusal`` (with ``smallest_group``,
  ``slice_names``, ``nearest``, ``wording``), ``patch``, ``applied``
- one decision per claim that is made: ``claims``
- told: ``chosen`` (what defaults chose for a pod), ``lookalikes`` (names of resources that stand in no list), ``findings`` (what an
  object's status has to say), ``effective`` (what policies make of a namespace)
- foretold: ``both_phases`` (one pod, mutate then validate), ``workloads`` (templates as the pods they will make), ``edit_tree``
"""
