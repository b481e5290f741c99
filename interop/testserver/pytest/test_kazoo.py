"""kazoo's client while servers die, sessions expire and networks are cut."""

import contextlib
import queue

import pytest
from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import LockTimeout
from kazoo.protocol.states import EventType
from kazoo.retry import KazooRetry

WAIT_S = 10


@contextlib.contextmanager
def client_of(servers, states=None):
    """A connected client; `states` is a queue for the changes of its state."""
    retry = KazooRetry(max_tries=-1, delay=0.05, max_delay=0.2)
    client = KazooClient(servers.connect, timeout=4, connection_retry=retry, command_retry=retry)
    if states:
        client.add_listener(states.put)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()


def test_a_lock_survives_the_kill_of_the_leader(ostler_ensemble):
    with client_of(ostler_ensemble) as holder, client_of(ostler_ensemble) as other:
        session = holder.client_id
        lock = holder.Lock("/lock")
        assert lock.acquire(timeout=WAIT_S)

        leader = ostler_ensemble.leader()
        ostler_ensemble.kill("leader")
        assert ostler_ensemble.leader() != leader

        with pytest.raises(LockTimeout):
            other.Lock("/lock").acquire(timeout=1)
        assert holder.client_id == session
        lock.release()
        assert other.Lock("/lock").acquire(timeout=WAIT_S)
        ostler_ensemble.restart(leader)
        ostler_ensemble.until_serving()
        assert "down" not in [server["state"] for server in ostler_ensemble.state()["servers"]]


def test_an_expired_session_is_lost(ostler_server):
    states = queue.Queue()
    with client_of(ostler_server, states) as client:
        assert states.get(timeout=WAIT_S) == KazooState.CONNECTED
        client.create("/mine", ephemeral=True)
        session, _ = client.client_id

        ostler_server.expire(session)

        assert KazooState.LOST in [states.get(timeout=WAIT_S), states.get(timeout=WAIT_S)]
        assert client.retry(client.exists, "/mine") is None
        assert client.client_id[0] != session


def test_a_cut_suspends_and_the_session_comes_back(ostler_ensemble):
    states = queue.Queue()
    with client_of(ostler_ensemble, states) as client:
        assert states.get(timeout=WAIT_S) == KazooState.CONNECTED
        session = client.client_id

        ostler_ensemble.cut("clients", "servers")
        assert states.get(timeout=WAIT_S) == KazooState.SUSPENDED

        ostler_ensemble.heal()
        assert states.get(timeout=WAIT_S) == KazooState.CONNECTED
        assert client.client_id == session


def test_a_leader_that_is_cut_off_is_replaced(ostler_ensemble):
    with client_of(ostler_ensemble) as client:
        leader = ostler_ensemble.leader()
        ostler_ensemble.cut("leader", "servers")
        ostler_ensemble.leader(other_than=leader)
        client.retry(client.create, "/written")

        ostler_ensemble.heal()
        ostler_ensemble.until_serving()
        direct = {server["id"]: server["direct"] for server in ostler_ensemble.state()["servers"]}
        old = KazooClient(direct[leader])
        old.start()
        old.sync("/")
        assert old.exists("/written")
        old.stop()
        old.close()


@pytest.fixture
def with_observer(ostler_testserver):
    ensemble = ostler_testserver.start(servers=4, observers=1, tick_ms=100, settings={"snapCount": 1000})
    yield ensemble
    ensemble.delete()


def test_an_observer_serves_clients(with_observer):
    servers = with_observer.state()["servers"]
    assert [server["state"] for server in servers].count("observer") == 1
    assert servers[3]["state"] == "observer"
    observer = KazooClient(servers[3]["address"])
    observer.start()
    observer.create("/by-the-observer")
    observer.stop()
    observer.close()


def test_an_event_waits_while_the_network_is_silent(ostler_server):
    with client_of(ostler_server) as watching, client_of(ostler_server) as writing:
        events = queue.Queue()
        watching.exists("/late", watch=events.put)
        ostler_server.silence("servers", "clients")
        writing.create_async("/late")
        with pytest.raises(queue.Empty):
            events.get(timeout=0.5)
        ostler_server.heal()
        assert events.get(timeout=WAIT_S).type == EventType.CREATED
