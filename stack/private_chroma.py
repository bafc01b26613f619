"""Chroma in a private network, so that no other user of the machine can connect. For Linux.

    python -m stack.private_chroma SOCKET chroma run --path PATH

Chroma's server has no password and listens on TCP only. Every local user can connect to that, and
so can every web page, through a domain name that resolves to this machine. Here Chroma runs in a
network namespace of its own, and the only way in is a Unix socket in a private folder. If the
system does not allow ordinary users to create such a namespace, Chroma listens on loopback, as it
would without this program.
"""

import asyncio
import contextlib
import ctypes
import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Awaitable, Callable

_Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
_LOOPBACK = "127.0.0.1"
_PORT_INSIDE = 8000
_READ_BYTES = 1 << 18
_BACKLOG = 128
# From <sched.h>, <sys/prctl.h>, <linux/sockios.h> and <net/if.h>.
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4
_SIOCSIFFLAGS, _IFF_UP, _IFF_RUNNING = 0x8914, 0x1, 0x40


def main() -> None:
    path, *command = sys.argv[1:]
    listener = _listen(path)
    apart = _works_in_a_copy(_leave_the_network)
    if apart:
        _leave_the_network()
        port = _PORT_INSIDE
    else:
        port = _free_port()
        print("This system allows no network apart: Chroma listens on loopback.", flush=True)
    sys.exit(asyncio.run(_serve([*command, "--host", _LOOPBACK], port, listener)))


def _listen(path: str) -> socket.socket:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(_BACKLOG)
    return listener


def _works_in_a_copy(attempt: Callable[[], None]) -> bool:
    """Whether the attempt succeeds, tried in a child process because it cannot be undone."""
    child = os.fork()
    if child == 0:
        try:
            attempt()
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def _leave_the_network() -> None:
    """Give this process and its children a network with only a loopback."""
    uid, gid = os.geteuid(), os.getegid()
    _call("unshare", _CLONE_NEWNET | (_CLONE_NEWUSER if uid else 0))
    if uid:  # it gets a user namespace, with the same ids as outside
        for name, line in (
            ("setgroups", "deny"),
            ("uid_map", f"{uid} {uid} 1"),
            ("gid_map", f"{gid} {gid} 1"),
        ):
            with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123
                file.write(line)
        # A supervisor of the same user must be able to find the process by its environment.
        _call("prctl", _PR_SET_DUMPABLE, 1, 0, 0, 0)
    with socket.socket() as any_socket:
        request = struct.pack("16sh22x", b"lo", _IFF_UP | _IFF_RUNNING)
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, request)


async def _serve(command: list[str], port: int, listener: socket.socket) -> int:
    """Serve until Chroma ends. Returns its exit code."""
    parent = os.getpid()

    def die_with_parent() -> None:
        # Two servers on one folder would lose data, so this one must not outlive us.
        _call("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    chroma = await asyncio.create_subprocess_exec(
        *command, "--port", str(port), stdin=subprocess.DEVNULL, preexec_fn=die_with_parent
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, chroma.terminate)
    relay = await asyncio.start_unix_server(_relaying_to(port), sock=listener)
    code = await chroma.wait()
    relay.close()
    return code if code >= 0 else 128 - code


def _relaying_to(port: int) -> _Handler:
    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inside = await asyncio.open_connection(_LOOPBACK, port)
        except OSError:  # it is not up yet
            writer.close()
            return
        await asyncio.gather(_pass_on(reader, inside[1]), _pass_on(inside[0], writer))

    return relay


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(_READ_BYTES):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass  # one side has closed, so the other is closed too
    finally:
        writer.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def _call(function: str, *arguments: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, function)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    main()
