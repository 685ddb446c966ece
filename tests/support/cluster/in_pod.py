"""A command of Berth as it runs in a pod: its service account is files of a folder, as a kubelet mounts them.

    python -P -m tests.support.cluster.in_pod FOLDER WORD...

The environment has the variables of the Service "kubernetes". When the command has ended, FOLDER/modules has the name of each module
that the process loaded.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from unittest.mock import patch

from cli.main import main
from cluster.client import api_client

if __name__ == "__main__":
    folder, *words = sys.argv[1:]
    mounted = Path(folder)
    with patch.object(api_client, "Access", partial(api_client.Access, mounted=mounted)):  # before the command's modules take it from there
        code = main(words)
    (mounted / "modules").write_text("\n".join(sorted(sys.modules)))
    sys.exit(code)
