"""The address of a server's client port: 127.0.0.1, except for servers in network namespaces of their own."""

import socket

LOCAL = "127.0.0.1"
_elsewhere: dict[int, str] = {}


def found_at(port: int, host: str) -> None:
    """From now on `port` is this host's."""
    _elsewhere[port] = host


def connect(port: int, timeout: float) -> socket.socket:
    return socket.create_connection((_elsewhere.get(port, LOCAL), port), timeout=timeout)
