"""Simulated links between the servers of an ensemble: each server reaches the others through relay ports that can be
cut.

Ports need no rights and no namespaces; namespaces.py cuts real links.

    links = Links(3, 27020)
    cluster = Cluster(makes, folder, 27000, links=links)
    links.cut(1, 2)      # no byte from 1 reaches 2, on connections of either; no connection is closed
    links.heal()         # the bytes that were held back arrive

Clients reach every server at any time. Java servers also connect to addresses from greetings, past these ports: cut
links between servers under test only."""

import asyncio
import itertools
import multiprocessing
import os
import signal

PORTS_PER_LINK = 2  # quorum and election


class Ways:
    """The directed ways between servers. Each way is open or cut."""

    def __init__(self, size):
        self.numbers = range(1, size + 1)
        self.pairs = list(itertools.permutations(self.numbers, 2))

    def turn(self, ways, is_open):
        """Opens or cuts these ways."""
        raise NotImplementedError

    def stop(self):
        """Ends what the ways run on."""

    def cut(self, source, sink):
        self.turn([(source, sink)], False)

    def cut_off(self, number, both_ways=True):
        """Cuts a server off from all others; `one way`: only what it sends is cut."""
        others = [n for n in self.numbers if n != number]
        self.part([number], others, both_ways)

    def part(self, some, others, both_ways=True):
        ways = list(itertools.product(some, others))
        self.turn(ways + [(b, a) for a, b in ways] if both_ways else ways, False)

    def heal(self):
        self.turn(self.pairs, True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Beside:
    """A process that relays the bytes between servers. It takes commands over a pipe, and answers each."""

    def __init__(self):
        self.process = None
        self.control, self.other_end = multiprocessing.Pipe()

    def start(self, serve, *args):
        """`serve` gets its end of the pipe last, and answers once when it is ready."""
        self.process = multiprocessing.Process(target=serve, args=(*args, self.other_end), daemon=True)
        self.process.start()
        self.control.recv()

    def tell(self, order):
        self.control.send(order)
        self.control.recv()

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.join()
            self.process = None


class Links(Ways):
    def __init__(self, size, base_port):
        super().__init__(size)
        self.at = {pair: base_port + PORTS_PER_LINK * n for n, pair in enumerate(self.pairs)}
        self.used, self.routes, self.beside = {}, [], Beside()

    def to(self, seen_by, number, port):
        """The port at which `seen_by` reaches port `port` of server `number`."""
        pair = (seen_by, number)
        here = self.at[pair] + self.used.get(pair, 0)
        self.used[pair] = self.used.get(pair, 0) + 1
        self.routes.append((here, port, pair))
        return here

    def start(self):
        self.beside.start(_serve, self.routes, self.numbers)
        return self

    def host(self, _number):
        return "127.0.0.1"

    def house(self, member):
        """Members live where they are started."""

    def turn(self, ways, is_open):
        self.beside.tell((ways, is_open))

    def stop(self):
        self.beside.stop()


def _serve(routes, numbers, control):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    asyncio.run(_forward_all(routes, numbers, control))


async def _forward_all(routes, numbers, control):
    ways = {pair: asyncio.Event() for pair in itertools.permutations(numbers, 2)}
    for way in ways.values():
        way.set()

    def obey():
        try:
            changed, is_open = control.recv()
        except EOFError:
            os._exit(0)
        for pair in changed:
            ways[pair].set() if is_open else ways[pair].clear()
        control.send(None)

    def server(port, pair):
        there, back = ways[pair], ways[pair[::-1]]

        async def connected(reader, writer):
            await there.wait()
            await back.wait()
            try:
                far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                writer.transport.abort()
                return
            await asyncio.gather(_forward(reader, far_writer, there), _forward(far_reader, writer, back))

        return connected

    for here, port, pair in routes:
        await asyncio.start_server(server(port, pair), "127.0.0.1", here)
    asyncio.get_running_loop().add_reader(control.fileno(), obey)
    control.send(None)
    await asyncio.Event().wait()


async def _forward(source, sink, way):
    """Copies all bytes and then the end. A failed sink is noticed by the thread that reads from that side."""
    try:
        while data := await source.read(1 << 16):
            await way.wait()
            try:
                sink.write(data)
                await sink.drain()
            except OSError:
                pass
    except OSError:
        pass
    await way.wait()
    sink.close()
