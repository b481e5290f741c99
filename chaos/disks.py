"""A separate disk for every server: ext4 in a file behind a loop device. It can fill up, fail, and lose power.

The faults are in the kernel's file system, so they hit every program. `shut_down` is the kernel's own switch for such
tests: after it no write reaches the device, and calls that need the device fail with EIO. Writes that were not synced
are lost: the next mount replays the journal, as after a power cut."""

import atexit
import fcntl
import os
import struct
import subprocess

from harness.outcome import Skip

SHUT_DOWN, WITHOUT_LOG_FLUSH = 0x8004587D, 2  # EXT4_IOC_SHUTDOWN
SIZE_MB = 2048  # of the file, which is sparse
MEMORY = "/dev/shm"
WRITES_PER_S = 25
THROTTLE = "/sys/fs/cgroup/blkio"


class Disk:
    def __init__(self, name, mount_point):
        self.mount_point = mount_point
        self.image = os.path.join(MEMORY if os.path.isdir(MEMORY) else os.path.dirname(mount_point), name + ".img")
        self.filler = os.path.join(mount_point, "filler")
        self.device = None
        os.makedirs(mount_point, exist_ok=True)
        atexit.register(self.remove)
        with open(self.image, "wb") as f:
            f.truncate(SIZE_MB << 20)
        _run("mkfs.ext4", "-q", "-m", "0", "-E", "lazy_itable_init=1,lazy_journal_init=1", self.image)
        self.mount()
        os.rmdir(os.path.join(mount_point, "lost+found"))

    def mount(self):
        self.device = _run("losetup", "--find", "--show", self.image).strip()
        _run("mount", "-t", "ext4", self.device, self.mount_point)

    def unmount(self):
        """Unmounts the disk. All processes with open files on it have ended."""
        _run("umount", self.mount_point)
        _run("losetup", "--detach", self.device)
        self.device = None

    def shut_down(self):
        here = os.open(self.mount_point, os.O_RDONLY)
        try:
            fcntl.ioctl(here, SHUT_DOWN, struct.pack("I", WITHOUT_LOG_FLUSH))
        finally:
            os.close(here)

    def sync(self):
        _run("sync", "--file-system", self.mount_point)

    def mount_again(self):
        self.unmount()
        self.mount()

    def fill(self):
        """Fills the disk."""
        with open(self.filler, "wb") as f:
            for size in (1 << 20, 1 << 12):
                self._fill_by(f, size)

    def _fill_by(self, file, size):
        room = os.statvfs(self.mount_point)
        while (blocks := room.f_bavail * room.f_frsize // size) > 0:
            try:
                os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, blocks * size)
            except OSError:
                return
            room = os.statvfs(self.mount_point)

    def make_room(self):
        os.remove(self.filler)

    def number(self):
        """MAJOR:MINOR of the device."""
        assert self.device is not None, "the disk is not there yet"
        at = os.stat(self.device).st_rdev
        return "%d:%d" % (os.major(at), os.minor(at))

    def remove(self):
        if self.device:
            subprocess.run(["umount", "--lazy", self.mount_point], stderr=subprocess.DEVNULL)
            subprocess.run(["losetup", "--detach", self.device], stderr=subprocess.DEVNULL)
            self.device = None
        if os.path.exists(self.image):
            os.remove(self.image)


def _run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise Skip("disks of their own are not to be had: %s" % (done.stderr.strip() or words[0]))
    return done.stdout


def cannot():
    """Why this machine has no such disks; None if it has."""
    if os.geteuid() != 0:
        return "loop devices take root"
    if not os.path.exists("/dev/loop-control"):
        return "the kernel has no loop devices"
    with open("/proc/filesystems") as f:
        return None if "ext4" in f.read().split() else "the kernel has no ext4"
