"""A read-only kazoo client that takes commands line by line. `read_only.py` runs it in kazoo's own environment."""

import sys

from kazoo.client import KazooClient
from kazoo.exceptions import NotReadOnlyCallError


def say(*words):
    """Prints a line in one piece, because two threads print."""
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()


client = KazooClient(hosts=sys.argv[1], timeout=4.0, read_only=True)
client.add_listener(lambda state: say("now", state))
client.start(timeout=30)
for line in sys.stdin:
    word, *rest = line.split()
    try:
        if word == "state":
            say("state", client.client_state)
        elif word == "get":
            say("data", client.get(rest[0])[0].decode())
        elif word == "set":
            client.retry(client.set, rest[0], rest[1].encode())
            say("set", rest[1])
    except NotReadOnlyCallError:
        say("not a read-only call")
    except Exception as error:  # report every error to the caller
        say("failed", type(error).__name__, str(error))
