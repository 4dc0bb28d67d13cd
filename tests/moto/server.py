"""moto's server in a process of its own: its clock, its threads and its warnings stay out of the tests.

`python -m tests.moto.server` prints its port and serves until its standard input closes, so it ends with whoever began
it.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ROOT = Path(__file__).parent.parent.parent


@contextmanager
def moto_server() -> Iterator[str]:
    """The URL of a server of one's own."""
    command = [sys.executable, "-m", "tests.moto.server"]
    with subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        assert port.isdigit(), "moto's server did not start"
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.stdin.close()
            process.wait(timeout=30)


def main() -> None:
    """Serve on a free port."""
    # Reading 700 images takes a second at each reset; accounts register one.
    os.environ["MOTO_EC2_LOAD_DEFAULT_AMIS"] = "false"
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    logging.getLogger("moto").setLevel(logging.CRITICAL)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    sys.stdout.write(f"{server.get_host_and_port()[1]}\n")
    sys.stdout.flush()
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    main()
