"""TCP ports: find a free one, or name the setting whose port is taken."""

import socket
import sys

from memory_core.kernel.errors import StackFault

LOOPBACK = "127.0.0.1"


# Bound but never listening: no other process gets such a port while this process lives, and on
# Linux the intended server can still listen there.
_reserved: list[socket.socket] = []


def free_port(host: str = LOOPBACK) -> int:
    """A port that is reserved for this process, even if others search for one at the same time."""
    probe = socket.socket()
    probe.bind((host, 0))
    port: int = probe.getsockname()[1]
    if sys.platform == "linux":
        # Set after the choice: otherwise the kernel would choose among the reserved ports too.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _reserved.append(probe)
    else:
        probe.close()
    return port


def is_free(port: int, host: str = LOOPBACK) -> bool:
    with socket.socket() as probe:
        # As servers do: a port in TIME_WAIT from our last run is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def claim(variable: str, wanted: int, host: str = LOOPBACK) -> int:
    """The port to use for `wanted`, where 0 means any. A taken port is an error that names the
    setting."""
    if wanted == 0:
        return free_port(host)
    if not is_free(wanted, host):
        raise StackFault(
            f"{variable}={wanted} is taken on {host} by another program. "
            f"Stop that program, or set {variable} to a free port (0 picks one).",
            details={"variable": variable, "port": wanted},
        )
    return wanted
