"""Control groups that limit a server's processor time and disk writes."""

import os

from chaos.disks import WRITES_PER_S

ROOT = "/sys/fs/cgroup"
PERIOD_US = 100_000


class Group:
    """The control group of one server. A process stays in it until it ends; limits can be set and removed."""

    def __init__(self, controller, name):
        self.path = os.path.join(ROOT, controller, name)
        os.makedirs(self.path, exist_ok=True)

    def write(self, name, text):
        with open(os.path.join(self.path, name), "w") as f:
            f.write(text)

    def take_in(self, process):
        self.write("cgroup.procs", "%d" % process.pid)

    def remove(self):
        try:
            os.rmdir(self.path)
        except OSError:
            pass  # a process is still in it


class Processor(Group):
    def __init__(self, name):
        super().__init__("cpu", name)

    def limit(self, share):
        """`share` of one core."""
        self.write("cpu.cfs_period_us", "%d" % PERIOD_US)
        self.write("cpu.cfs_quota_us", "%d" % max(1000, share * PERIOD_US))

    def free(self):
        self.write("cpu.cfs_quota_us", "-1")

    @staticmethod
    def cannot():
        return _lacks("cpu/cpu.shares", "cpu")


class Writes(Group):
    def __init__(self, name):
        super().__init__("blkio", name)

    def limit(self, disk):
        self.write("blkio.throttle.write_iops_device", "%s %d" % (disk.number(), WRITES_PER_S))

    def free(self, disk):
        self.write("blkio.throttle.write_iops_device", "%s 0" % disk.number())

    @staticmethod
    def cannot():
        return _lacks("blkio/blkio.throttle.write_iops_device", "blkio")


def _lacks(file, controller):
    there = os.path.exists(os.path.join(ROOT, file)) and os.access(os.path.join(ROOT, controller), os.W_OK)
    return None if there else "no control group `%s` (version 1) in %s" % (controller, ROOT)
