"""Runs one ensemble through its rounds: faults begin and end as planned, all servers must serve again, and everything
is checked."""

import dataclasses
import json
import os
import random
import shutil
import time
from collections import namedtuple

from chaos.checks import Epochs, Verdict, interval, judge, line_differs, numbers_out_of_line, reads_that_go_back
from chaos.history import History
from chaos.load import LINE, RecordedLoad, children_with_data, sweep
from chaos.testbed import Testbed
from ensemble.cluster import patiently
from ensemble.load import LOST
from harness.outcome import Mismatch, expect, expect_equal
from harness.peers import CHECKOUT
from harness.server import NotServing, work_folder
from harness.session import Refused

LOOK_EVERY = 6  # rounds
RECOVERY_S = 120  # the machine may be busy with other things
EVIDENCE = os.path.join(CHECKOUT, "target", "chaos")

Round = namedtuple("Round", "kinds began ended")


class Campaign:
    def __init__(self, server, size, port, seed, kinds, report):
        self.is_java, self.report, self.seed = server.startswith("java"), report, seed
        self.folder = work_folder("chaos")
        self.evidence = os.path.join(
            EVIDENCE, "%s-%d-servers-seed-%d" % ("java" if self.is_java else "ostler", size, seed)
        )
        self.testbed = Testbed(server, size, port, self.folder, seed, kinds)
        self.cluster = self.testbed.cluster
        self.rounds = []  # since the last look
        self.counted = (0, 0, 0, 0)
        self.began = time.monotonic()

    def run(self, plan, until, look_every=LOOK_EVERY):
        """Runs to the end of the plan or the time. False if an error ended the run before."""
        try:
            self.testbed.start_all()
            self.cluster.wait_quorum()
            self.load = RecordedLoad(self.cluster.ports(), self.seed, History())
            self.epochs = Epochs(self.cluster).start()
            self.load.start()
            return self._rounds(plan, until, look_every)
        finally:
            self.report.seconds += time.monotonic() - self.began
            self.testbed.stop()

    def _rounds(self, plan, until, look_every):
        try:
            for faults in plan:
                self._round(faults)
                if len(self.rounds) == look_every:
                    self._look()
                    self.load.start()
                if time.monotonic() > until:
                    break
            self._look()
            return True
        except (Mismatch, AssertionError, NotServing, Refused, *LOST) as what:
            under_way = self.rounds and self.rounds[-1].ended is None
            self._wrong("%s: %s" % (type(what).__name__, what), self.rounds[-1].kinds if under_way else None)
            return False
        finally:
            self._count()
            self.load.abandon()
            self.epochs.stop()

    def _count(self):
        """Adds the numbers of requests and answers since the last call."""
        now = self._counts()
        self.report.acknowledged += now[0] - self.counted[0]
        self.report.unknown += now[1] - self.counted[1]
        self.report.epochs += len(self.epochs.leader_of) - self.counted[2]
        self.report.ended += self.testbed.ended - self.counted[3]
        self.counted = (*now, len(self.epochs.leader_of), self.testbed.ended)

    # ---- one round ----
    def _round(self, faults):
        report, began = self.report, time.monotonic()
        before = self._counts()
        print(
            "round %d: %s"
            % (
                report.rounds + 1,
                ", ".join("%s %.1f-%.1f s" % (f.kind.name, f.after_s, f.after_s + f.lasts_s) for f in faults),
            ),
            end="",
            flush=True,
        )
        self.rounds.append(Round([f.kind for f in faults], began, None))
        for fault in faults:
            report.rows[fault.kind.name].times += 1
        ended = self.testbed.ended
        self._carry_out(faults)
        healed = time.monotonic()
        self.cluster.wait_quorum(RECOVERY_S)
        self.load.wait_progress(RECOVERY_S)
        self.rounds[-1] = self.rounds[-1]._replace(ended=time.monotonic())
        recovery = time.monotonic() - healed
        acknowledged, unknown = (now - then for now, then in zip(self._counts(), before))
        for fault in faults:
            row = report.rows[fault.kind.name]
            row.seconds += fault.lasts_s
            row.acknowledged += acknowledged
            row.unknown += unknown
            row.ended += self.testbed.ended - ended
            row.recovery_s = max(row.recovery_s, recovery)
        report.rounds += 1
        print("; %d operations, %d unknown, all serve after %.1f s" % (acknowledged, unknown, recovery), flush=True)

    def _carry_out(self, faults):
        """Begins and ends each fault at its time, or at once if that time has passed."""
        began = time.monotonic()
        moments = []
        for fault in faults:
            going_on = fault.kind.do(self.testbed)
            moments += [(fault.after_s, fault, going_on), (fault.after_s + fault.lasts_s, fault, going_on)]
        for moment, fault, going_on in sorted(moments, key=lambda one: one[0]):
            time.sleep(max(0.0, began + moment - time.monotonic()))
            self.testbed.chance = random.Random(fault.seed)
            next(going_on, None)

    def _counts(self):
        return self.load.acknowledged, self.load.unknown

    # ---- looking ----
    def _look(self):
        """Checks that no acknowledged write is lost, that all trees are equal, and that the history is linearizable."""
        report, load = self.report, self.load
        load.stop()
        self._judge_registers()
        self._judge_line()
        for member in self.cluster.running():
            patiently(lambda: load.check(member.port))
        # Java's digests of the past may be of transactions that were cut off.
        self.cluster.look_same(without_digests=self.cluster.members if self.is_java else ())
        if not self.is_java:
            for member in self.cluster.running():
                expect_equal(member.digest_mismatches(), 0, "digest mismatches of server %d" % member.number)
                expect(
                    "panicked at" not in member.log_text(),
                    "server %d panicked: %s" % (member.number, member.log_tail()),
                )
        expect_equal(load.expired, 0, "sessions that ended although their clients came back in time")
        for text in self.epochs.wrong:
            self._wrong(text)
        self.epochs.wrong.clear()
        patiently(lambda: sweep(self.cluster.running()[0].port))
        report.looks += 1
        self.rounds = []
        print(
            "look %d: %d registers and %d numbers so far; all there, all equal"
            % (report.looks, report.registers, report.numbers),
            flush=True,
        )

    def _judge_registers(self):
        report = self.report
        for register, operations in self.load.history.take().items():
            verdict, kinds = judge(operations), self._going_on(*interval(operations))
            report.registers += 1
            report.operations += len(operations)
            if verdict is Verdict.TOO_LONG:
                report.undecided += 1
            elif verdict is Verdict.STALE_SYNC and any(kind.stale_syncs for kind in kinds):
                report.stale_syncs += 1
                for kind in kinds:
                    report.rows[kind.name].stale_syncs += 1
            elif verdict is not Verdict.OK:
                self._wrong("%s: %s%s" % (register, verdict.value, self._keep(register, operations)), kinds)
            for text in reads_that_go_back(register, operations):
                self._wrong(text + self._keep(register, operations), kinds)

    def _judge_line(self):
        created, unknown = self.load.line()
        present = patiently(lambda: children_with_data(self.cluster.running()[0].port, LINE))
        for text in [*numbers_out_of_line(created), *line_differs(created, unknown, present)]:
            self._wrong(text)
        self.report.numbers += len(created)

    def _going_on(self, began, ended):
        """The kinds of faults in the rounds that overlap with an interval."""
        kinds = [
            kind
            for one in self.rounds
            for kind in one.kinds
            if one.began <= ended and (one.ended is None or began <= one.ended)
        ]
        return list(dict.fromkeys(kinds))

    # ---- what is wrong ----
    def _wrong(self, text, kinds=None):
        """Notes an error. Without `kinds` it counts for all rounds since the last check."""
        if kinds is None:
            kinds = self._going_on(0, time.monotonic())
        self.report.fault(text, kinds)
        print("\nWRONG (%s): %s" % (", ".join(kind.name for kind in kinds), text), flush=True)
        self._keep_logs()

    def _keep(self, register, operations):
        """Writes a history with an error to a file. Returns its path."""
        os.makedirs(self.evidence, exist_ok=True)
        path = os.path.join(self.evidence, register.strip("/").replace("/", "-") + ".json")
        with open(path, "w") as f:
            for op in sorted(operations, key=lambda op: op.began):
                f.write(json.dumps(dataclasses.asdict(op)) + "\n")
        return "; see %s" % path

    def _keep_logs(self):
        os.makedirs(self.evidence, exist_ok=True)
        for number, folder in self.testbed.folders.items():
            if os.path.exists(folder + "/log"):
                shutil.copy(folder + "/log", "%s/log-%d" % (self.evidence, number))
