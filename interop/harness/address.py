"""How a server's client port is reached: at 127.0.0.1 in plain text, unless a check says otherwise."""

import socket
import ssl
from collections.abc import Callable

LOCAL = "127.0.0.1"
_elsewhere: dict[int, str] = {}
_secured: dict[int, Callable[[], ssl.SSLContext]] = {}


def found_at(port: int, host: str) -> None:
    """From now on `port` is this host's, as with servers in network namespaces of their own."""
    _elsewhere[port] = host


def secured(port: int, context: Callable[[], ssl.SSLContext]) -> None:
    """From now on `port` is spoken to by TLS. `context` is asked for each connection, for its files may be new."""
    _secured[port] = context


def connect(port: int, timeout: float) -> socket.socket:
    host = _elsewhere.get(port, LOCAL)
    plain = socket.create_connection((host, port), timeout=timeout)
    if port not in _secured:
        return plain
    try:
        return _secured[port]().wrap_socket(plain, server_hostname="localhost" if host == LOCAL else host)
    except BaseException:
        plain.close()
        raise
