"""TCP ports: find a free one, or say which variable names a taken one."""

import socket

from memory_core.errors import StackFault

LOOPBACK = "127.0.0.1"


def free_port(host: str = LOOPBACK) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
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
    """The port to use for `wanted`, where 0 means any. A taken one is an error that names it."""
    if wanted == 0:
        return free_port(host)
    if not is_free(wanted, host):
        raise StackFault(
            f"{variable}={wanted} is taken on {host} by another program. "
            f"Stop that program, or set {variable} to a free port (0 picks one).",
            details={"variable": variable, "port": wanted},
        )
    return wanted
