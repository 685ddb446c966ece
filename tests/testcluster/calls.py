"""How long a test waits for what must come, before it is given up. Waiting measures nothing: no test depends on how fast the machine is."""

from __future__ import annotations

PATIENCE = 300.0
"""Seconds. The longest of these waits takes fifteen where two cores are idle (a control plane starts); under a quarter of each core, with
another test beside it, that becomes two minutes."""
