"""The faults. Each is a generator: the code before `yield` injects the fault, the code after it repairs it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from chaos import clocks, disks, failures, relay
from chaos.relay import PacketFaults
from chaos.shares import Processor, Writes

CLOCK_JUMPS_S = (-86_400, -3_600, -30, 30, 3_600, 86_400)
CORE_SHARES = (0.02, 0.05, 0.1)


@dataclass(frozen=True)
class Kind:
    name: str
    what: str
    do: Callable = field(repr=False)
    needs: tuple = ()
    takes: int = 1  # the number of servers that it harms; a fault with ALL runs alone
    stale_syncs: bool = False  # a deposed leader may not know that it is deposed

    def cannot(self):
        """Why this machine cannot inject the fault; None if it can."""
        return next(filter(None, (need.cannot() for need in self.needs)), None)


ALL = 99
KINDS = {}


def kind(what, needs=(), takes=1, stale_syncs=False):
    def listed(do):
        name = do.__name__.replace("_", "-")
        KINDS[name] = Kind(name, what, do, needs, takes, stale_syncs)
        return do

    return listed


# ---- processes ----
@kind("kill -9 of the leader")
def kill_leader(testbed):
    yield from _killed(testbed, testbed.take_leader())


@kind("kill -9 of a follower")
def kill_follower(testbed):
    yield from _killed(testbed, testbed.take_follower())


def _killed(testbed, member):
    testbed.kill(member)
    yield
    testbed.start(member)
    testbed.release(member)


@kind("kill -9 of all servers at once", takes=ALL)
def kill_all(testbed):
    members = testbed.take_all()
    for member in members:
        testbed.kill(member)
    yield
    for member in members:
        testbed.start(member)
    testbed.release(*members)


@kind("the leader is stopped (SIGSTOP) and goes on later", stale_syncs=True)
def stop_leader(testbed):
    yield from _stopped(testbed, testbed.take_leader())


@kind("a follower is stopped and goes on later", stale_syncs=True)
def stop_follower(testbed):
    yield from _stopped(testbed, testbed.take_follower())


def _stopped(testbed, member):
    member.pause()
    yield
    member.resume()
    testbed.release(member)


@kind("a server has a few hundredths of a core", needs=(Processor,), stale_syncs=True)
def starve_cpu(testbed):
    member = testbed.take_any()
    testbed.processors[member.number].limit(testbed.chance.choice(CORE_SHARES))
    yield
    testbed.processors[member.number].free()
    testbed.release(member)


@kind("a server's wall clock jumps by up to a day, there and back", needs=(clocks,))
def move_clock(testbed):
    member = testbed.take_leader() if testbed.chance.random() < 0.5 else testbed.take_any()
    testbed.clocks[member.number].move(testbed.chance.choice(CLOCK_JUMPS_S))
    yield
    testbed.clocks[member.number].move(0)
    testbed.release(member)


# ---- links ----
@kind("nothing passes between the leader and the others", takes=0, stale_syncs=True)
def isolate_leader(testbed):
    yield from _cut(testbed, _ways(testbed, True, True))


@kind("the others hear nothing of the leader, or it nothing of them", takes=0, stale_syncs=True)
def isolate_one_way(testbed):
    there = testbed.chance.random() < 0.5
    yield from _cut(testbed, _ways(testbed, there, not there))


@kind("some links are cut, in one direction or both", takes=0, stale_syncs=True)
def cut_links(testbed):
    pairs = testbed.links.pairs
    yield from _cut(testbed, testbed.chance.sample(pairs, testbed.chance.randint(1, len(pairs) // 2)))


def _ways(testbed, there, back):
    leader = testbed.take_leader()
    testbed.release(leader)  # its links are harmed, not the server
    ways = testbed.ways_of(leader)
    return [way for way in ways if (there if way[0] == leader.number else back)]


def _cut(testbed, ways):
    testbed.links.turn(ways, False)
    yield
    testbed.links.turn(ways, True)


@kind("packets of one or all servers are 20 to 150 ms late", needs=(relay,), takes=0, stale_syncs=True)
def slow_links(testbed):
    late = testbed.chance.uniform(0.02, 0.15)
    yield from _with_packet_faults(testbed, PacketFaults(delay_s=late, jitter_s=late / 10))


@kind("2 to 20 of 100 packets are lost", needs=(relay,), takes=0, stale_syncs=True)
def lossy_links(testbed):
    yield from _with_packet_faults(testbed, PacketFaults(delay_s=0.001, lost=testbed.chance.uniform(0.02, 0.2)))


@kind("packets overtake each other, some come twice", needs=(relay,), takes=0, stale_syncs=True)
def shuffled_links(testbed):
    yield from _with_packet_faults(testbed, PacketFaults(delay_s=0.002, jitter_s=0.03, reordered=0.25, twice=0.05))


def _with_packet_faults(testbed, packet_faults):
    some = testbed.chance.random() < 0.5
    ways = (
        testbed.ways_of(testbed.chance.choice(list(testbed.cluster.members.values()))) if some else testbed.links.pairs
    )
    testbed.links.set_packet_faults(ways, packet_faults)
    yield
    testbed.links.set_packet_faults(ways, None)


# ---- disks ----
@kind("no room is left on a server's disk", needs=(disks,))
def disk_full(testbed):
    member = testbed.take_any()
    disk = testbed.disks[member.number]
    disk.fill()
    yield
    testbed.end_broken(member)
    disk.make_room()
    testbed.start(member)
    testbed.release(member)


@kind("every write and sync of a server's disk fails (EIO); what was not synced is lost", needs=(disks,))
def disk_error(testbed):
    member = testbed.take_any()
    testbed.disks[member.number].shut_down()
    yield
    testbed.end_broken(member)
    testbed.disks[member.number].mount_again()
    testbed.start(member)
    testbed.release(member)


@kind("one sync or write of a server's log fails (EIO), and the next would not", needs=(failures,))
def sync_error(testbed):
    member = testbed.take_any()
    testbed.failures[member.number].fail_next(testbed.chance.choice(failures.CALLS))
    yield
    if testbed.is_java:  # it may go on
        testbed.failures[member.number].forget()
    else:
        testbed.failures[member.number].wait_ended(member)
    testbed.end_broken(member)
    testbed.start(member)
    testbed.release(member)


@kind("a server's disk takes %d writes a second" % disks.WRITES_PER_S, needs=(disks, Writes))
def slow_disk(testbed):
    member = testbed.take_any()
    testbed.writes[member.number].limit(testbed.disks[member.number])
    yield
    testbed.writes[member.number].free(testbed.disks[member.number])
    testbed.release(member)


@kind("power cut of one server: what it had not synced is lost", needs=(disks,))
def power_cut(testbed):
    yield from _powerless(testbed, [testbed.take_any()])


@kind("power cut of all servers at once", needs=(disks,), takes=ALL)
def power_cut_all(testbed):
    yield from _powerless(testbed, testbed.take_all())


def _powerless(testbed, members):
    for member in members:
        member.pause()  # it does nothing with a disk that is gone
    for member in members:
        testbed.disks[member.number].shut_down()
    for member in members:
        testbed.kill(member)
        testbed.disks[member.number].mount_again()
    yield
    for member in members:
        testbed.start(member)
    testbed.release(*members)
