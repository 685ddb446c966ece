"""The command line: one file per subcommand, each with ``add_parser(subparsers)`` and ``run(args) -> exit
code``.

Exit codes: 0 done (``berth try``: all admitted), 1 something was denied, 2 the input is wrong. A
subcommand's module is imported only when it is the one to run: ``berth try`` starts without the server's
libraries.
"""

VERSION = "0.1.0"
KUBERNETES = ("1.30", "1.37")
"""The oldest and the newest version of Kubernetes that it is for: the README says what was tried on which."""
