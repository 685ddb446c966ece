"""Test cases of policies, for `berth test`: read from files, decided, compared with what they expect, and filled in.

Nothing here prints or exits; the subcommand is ``cli/inspect/policy_tests``.
"""
