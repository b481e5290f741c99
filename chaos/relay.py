"""Links between network namespaces that delay, lose and reorder packets.

This replaces `netem`, which some kernels lack. A separate route leads the packets from one server to another through a
tunnel device. A process reads them there, delays or drops them, and writes them to the other server's tunnel device.
They are whole IP packets, so the servers' TCP must cope. Links without such a fault do not use the relay."""

import asyncio
import ctypes
import fcntl
import os
import random
import signal
import struct
from dataclasses import dataclass

from ensemble.links import Beside
from ensemble.namespaces import Namespaces, in_namespace

DEVICE = "far0"
TUNSETIFF, IFF_TUN, IFF_NO_PI, CLONE_NEWNET = 0x400454CA, 1, 0x1000, 0x40000000


@dataclass(frozen=True)
class PacketFaults:
    """The delay, loss and reordering of a link."""

    delay_s: float = 0.0
    jitter_s: float = 0.0  # random additional delay, which changes the order
    lost: float = 0.0
    twice: float = 0.0
    reordered: float = 0.0  # the share of packets that get the jitter; all by default


class RelayedNamespaces(Namespaces):
    def __init__(self, size, seed):
        super().__init__(size)
        self.seed, self.cut_ways, self.beside = seed, set(), Beside()

    def start(self):
        super().start()
        names = {n: self._name(n) for n in self.numbers}
        hosts = {socket_address(self.host(n)): n for n in self.numbers}
        self.beside.start(_serve, names, hosts, self.seed)
        for name in names.values():
            in_namespace(name, "link set %s up" % DEVICE)
            for device in ("all", DEVICE):
                self._loosen(name, device)
        return self

    def _loosen(self, name, device):
        """Packets may come from a device that their answers do not leave by."""
        self.inside(name, ["sysctl", "-q", "-w", "net.ipv4.conf.%s.rp_filter=0" % device])

    def turn(self, ways, is_open):
        self.cut_ways = self.cut_ways - set(ways) if is_open else self.cut_ways | set(ways)
        if self.beside.process:
            self.beside.tell({"cut": self.cut_ways})
        super().turn(ways, is_open)

    def set_packet_faults(self, ways, packet_faults):
        """Sets how packets on these ways are delayed, lost and reordered; None removes it."""
        self.beside.tell({"packet_faults": (list(ways), packet_faults)})
        for source, sink in ways:
            route = "%s/32" % self.host(sink)
            if packet_faults:
                in_namespace(self._name(source), "route replace %s dev %s src %s" % (route, DEVICE, self.host(source)))
            else:
                in_namespace(self._name(source), "route flush %s" % route)

    def stop(self):
        self.beside.stop()
        super().stop()


def socket_address(host):
    return bytes(int(part) for part in host.split("."))


def cannot():
    return None if os.path.exists("/dev/net/tun") else "the kernel has no tunnel devices"


def _open_tunnel(name):
    """A tunnel device in that namespace. The calling process stays in it."""
    with open("/run/netns/" + name) as place:
        if ctypes.CDLL(None, use_errno=True).setns(place.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns " + name)
    tunnel = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tunnel, TUNSETIFF, struct.pack("16sH", DEVICE.encode(), IFF_TUN | IFF_NO_PI))
    return tunnel


def _serve(names, hosts, seed, control):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    tunnels = {n: _open_tunnel(name) for n, name in names.items()}
    asyncio.run(_Relay(tunnels, hosts, seed, control).run())


class _Relay:
    def __init__(self, tunnels, hosts, seed, control):
        self.tunnels, self.hosts, self.control = tunnels, hosts, control
        self.chance = random.Random("relay %d" % seed)
        self.cut, self.packet_faults = set(), {}

    async def run(self):
        self.loop = asyncio.get_running_loop()
        for number, tunnel in self.tunnels.items():
            self.loop.add_reader(tunnel, self._read, number, tunnel)
        self.loop.add_reader(self.control.fileno(), self._obey)
        self.control.send(None)
        await asyncio.Event().wait()

    def _obey(self):
        try:
            what = self.control.recv()
        except EOFError:
            os._exit(0)
        self.cut = what.get("cut", self.cut)
        for way in what.get("packet_faults", ((), None))[0]:
            self.packet_faults[way] = what["packet_faults"][1]
        self.control.send(None)

    def _read(self, source, tunnel):
        try:
            while True:
                self._pass_on(source, os.read(tunnel, 1 << 16))
        except BlockingIOError:
            pass

    def _pass_on(self, source, packet):
        sink = self.hosts.get(packet[16:20]) if packet[0] >> 4 == 4 else None
        packet_faults = self.packet_faults.get((source, sink)) or PacketFaults()
        if sink is None or self.chance.random() < packet_faults.lost:
            return
        for _ in range(2 if self.chance.random() < packet_faults.twice else 1):
            held = not packet_faults.reordered or self.chance.random() < packet_faults.reordered
            delay = packet_faults.delay_s + (self.chance.uniform(0, packet_faults.jitter_s) if held else 0)
            self.loop.call_later(delay, self._deliver, (source, sink), packet)

    def _deliver(self, way, packet):
        if way not in self.cut:
            try:
                os.write(self.tunnels[way[1]], packet)
            except OSError:
                pass  # lost, as on any link
