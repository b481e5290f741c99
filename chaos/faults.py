"""The faults. Each is a generator: the code before `yield` injects the fault, the code after it repairs it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from chaos import clocks, disks, failures, relay
from chaos.relay import Weather
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
def kill_leader(ground):
    yield from _killed(ground, ground.take_leader())


@kind("kill -9 of a follower")
def kill_follower(ground):
    yield from _killed(ground, ground.take_follower())


def _killed(ground, member):
    ground.kill(member)
    yield
    ground.start(member)
    ground.release(member)


@kind("kill -9 of all servers at once", takes=ALL)
def kill_all(ground):
    members = ground.take_all()
    for member in members:
        ground.kill(member)
    yield
    for member in members:
        ground.start(member)
    ground.release(*members)


@kind("the leader is stopped (SIGSTOP) and goes on later", stale_syncs=True)
def stop_leader(ground):
    yield from _stopped(ground, ground.take_leader())


@kind("a follower is stopped and goes on later", stale_syncs=True)
def stop_follower(ground):
    yield from _stopped(ground, ground.take_follower())


def _stopped(ground, member):
    member.pause()
    yield
    member.resume()
    ground.release(member)


@kind("a server has a few hundredths of a core", needs=(Processor,), stale_syncs=True)
def starve_cpu(ground):
    member = ground.take_any()
    ground.processors[member.number].limit(ground.chance.choice(CORE_SHARES))
    yield
    ground.processors[member.number].free()
    ground.release(member)


@kind("a server's wall clock jumps by up to a day, there and back", needs=(clocks,))
def move_clock(ground):
    member = ground.take_leader() if ground.chance.random() < 0.5 else ground.take_any()
    ground.clocks[member.number].move(ground.chance.choice(CLOCK_JUMPS_S))
    yield
    ground.clocks[member.number].move(0)
    ground.release(member)


# ---- links ----
@kind("nothing passes between the leader and the others", takes=0, stale_syncs=True)
def isolate_leader(ground):
    yield from _cut(ground, _ways(ground, True, True))


@kind("the others hear nothing of the leader, or it nothing of them", takes=0, stale_syncs=True)
def isolate_one_way(ground):
    there = ground.chance.random() < 0.5
    yield from _cut(ground, _ways(ground, there, not there))


@kind("some links are cut, in one direction or both", takes=0, stale_syncs=True)
def cut_links(ground):
    pairs = ground.links.pairs
    yield from _cut(ground, ground.chance.sample(pairs, ground.chance.randint(1, len(pairs) // 2)))


def _ways(ground, there, back):
    leader = ground.take_leader()
    ground.release(leader)  # its links are harmed, not the server
    ways = ground.ways_of(leader)
    return [way for way in ways if (there if way[0] == leader.number else back)]


def _cut(ground, ways):
    ground.links.turn(ways, False)
    yield
    ground.links.turn(ways, True)


@kind("packets of one or all servers are 20 to 150 ms late", needs=(relay,), takes=0, stale_syncs=True)
def slow_links(ground):
    late = ground.chance.uniform(0.02, 0.15)
    yield from _weather(ground, Weather(delay_s=late, jitter_s=late / 10))


@kind("2 to 20 of 100 packets are lost", needs=(relay,), takes=0, stale_syncs=True)
def lossy_links(ground):
    yield from _weather(ground, Weather(delay_s=0.001, lost=ground.chance.uniform(0.02, 0.2)))


@kind("packets overtake each other, some come twice", needs=(relay,), takes=0, stale_syncs=True)
def shuffled_links(ground):
    yield from _weather(ground, Weather(delay_s=0.002, jitter_s=0.03, reordered=0.25, twice=0.05))


def _weather(ground, weather):
    some = ground.chance.random() < 0.5
    ways = ground.ways_of(ground.chance.choice(list(ground.cluster.members.values()))) if some else ground.links.pairs
    ground.links.weather(ways, weather)
    yield
    ground.links.weather(ways, None)


# ---- disks ----
@kind("no room is left on a server's disk", needs=(disks,))
def disk_full(ground):
    member = ground.take_any()
    disk = ground.disks[member.number]
    disk.fill()
    yield
    ground.end_broken(member)
    disk.make_room()
    ground.start(member)
    ground.release(member)


@kind("every write and sync of a server's disk fails (EIO); what was not synced is lost", needs=(disks,))
def disk_error(ground):
    member = ground.take_any()
    ground.disks[member.number].shut_down()
    yield
    ground.end_broken(member)
    ground.disks[member.number].mount_again()
    ground.start(member)
    ground.release(member)


@kind("one sync or write of a server's log fails (EIO), and the next would not", needs=(failures,))
def sync_error(ground):
    member = ground.take_any()
    ground.failures[member.number].fail_next(ground.chance.choice(failures.CALLS))
    yield
    if ground.is_java:  # it may go on
        ground.failures[member.number].forget()
    else:
        ground.failures[member.number].wait_ended(member)
    ground.end_broken(member)
    ground.start(member)
    ground.release(member)


@kind("a server's disk takes %d writes a second" % disks.WRITES_PER_S, needs=(disks, Writes))
def slow_disk(ground):
    member = ground.take_any()
    ground.writes[member.number].limit(ground.disks[member.number])
    yield
    ground.writes[member.number].free(ground.disks[member.number])
    ground.release(member)


@kind("power cut of one server: what it had not synced is lost", needs=(disks,))
def power_cut(ground):
    yield from _powerless(ground, [ground.take_any()])


@kind("power cut of all servers at once", needs=(disks,), takes=ALL)
def power_cut_all(ground):
    yield from _powerless(ground, ground.take_all())


def _powerless(ground, members):
    for member in members:
        member.pause()  # it does nothing with a disk that is gone
    for member in members:
        ground.disks[member.number].shut_down()
    for member in members:
        ground.kill(member)
        ground.disks[member.number].mount_again()
    yield
    for member in members:
        ground.start(member)
    ground.release(*members)
