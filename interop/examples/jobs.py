"""The job scheduler: no result of a deposed leader gets into the database.

A leader is stopped by SIGSTOP in the midst of a job until another one leads; its write is refused when it goes on. Then
the leading instance is killed, the leading server, and an instance ends by SIGTERM. At last the database does not
answer, and has a token that no leader has had."""

from examples.postgres import Postgres
from examples.stage import Stage, wait_until
from harness.outcome import expect, expect_equal

SESSION_MS = 3000
NAMES = ("a", "b", "c")
LEADS = r"^leads, with token (0x[0-9a-f]+)$"
BEGINS = r"job (\d+): begins$"
WRITTEN = r"^job (\d+): the result is written$"
REFUSED = r"job %d: the result is REFUSED"
MORE = 3  # results that show that jobs go on


def token_of(instance):
    """That of its last leadership; 0 if it has not led."""
    said = instance.said(LEADS)
    return int(said[-1][1][1], 16) if said else 0


def leader_after(instances, token):
    """The instance whose token is larger than this one; None if there is none."""
    first = max(instances, key=token_of)
    return first if token_of(first) > token else None


def count(database):
    return int(database.rows("SELECT count(*) FROM results")[0][0])


def wait_for_more(database, what):
    """Waits for more results. Returns how long that took."""
    wanted = count(database) + MORE
    return wait_until("results " + what, lambda: count(database) >= wanted)[1]


def pause(leader, others, database):
    """The leader is paused while it runs a job, until another one has written."""
    while True:
        leader.seen = len(leader.output)
        job = int(leader.wait_for(BEGINS).group(1))
        leader.pause()
        if not database.rows("SELECT job FROM results WHERE job = %d" % job):
            break
        leader.resume()  # the job was over before the pause
    token = token_of(leader)
    following, took = wait_until("a leader after the one that is paused", lambda: leader_after(others, token))
    written = wait_until("a result of the next leader", lambda: following.said(WRITTEN))[0]
    leader.resume()
    leader.wait_for(REFUSED % job)
    (row,) = database.rows("SELECT token, leader FROM results WHERE job = %d" % job)
    expect(int(row[0]) > token, "job %d has the result of the paused leader: %s" % (job, row))
    print(
        "paused in job %d; %s led after %.1f s and wrote job %s; the write of the paused one is refused"
        % (job, following.name, took, written[0][1][1]),
        flush=True,
    )
    leader.show("REFUSED|not lead any more")
    return following


def check_table(database, instances):
    """The results are in the order of the leaderships, one for each job, and as the instances say."""
    rows = [
        (int(job), int(token), name)
        for job, token, name in database.rows("SELECT job, token, leader FROM results ORDER BY written")
    ]
    late = [row for before, row in zip(rows, rows[1:]) if row[1] < before[1]]
    expect(not late, "results that were written after those of a later leader: %s" % late[:5])
    expect_equal([job for job, _, _ in rows], list(range(1, len(rows) + 1)), "the jobs, in the order of their results")
    of = {job: name for job, _, name in rows}
    for instance in instances:
        for _, match in instance.said(WRITTEN):
            expect_equal(of.get(int(match[1])), instance.name, "the writer of job " + match[1])
    return len(rows), len({token for _, token, _ in rows})


def check_silence(stage, options, database):
    """A database that does not answer: the leader ends, and the next one has its turn. Returns both."""
    leader = stage.start("job-scheduler", "silenced", SESSION_MS, "--name", "silenced", *options)
    leader.wait_for("leads, with token")
    following = stage.start("job-scheduler", "next", SESSION_MS, "--name", "next", *options)
    following.wait_for("waits to be elected")
    with database.locked("leader"):
        leader.wait_for("NoAnswerWithin")
    expect(leader.process.wait(10) != 0, "an instance without an answer of the database has ended with 0")
    wait_until("a leader after that", lambda: token_of(following) > token_of(leader))
    wait_for_more(database, "after the database was silent")
    print("the database is silent: the leader ends, and another one leads", flush=True)
    return leader, following


def check_reset(leader, stage, options, database):
    """The database has a token that no leader of this ensemble has had: the leader ends, and the next one as well."""
    database.rows("UPDATE leader SET token = token + (1::bigint << 40)")
    after = stage.start("job-scheduler", "after", SESSION_MS, "--name", "after", *options)
    for one in (leader, after):
        one.wait_for("was the data of the servers reset")
        expect(one.process.wait(10) != 0, "an instance with a smaller token has ended with 0")
    print("a larger token in the database: each instance ends, and says so", flush=True)


def check(args):
    with Postgres(args.port + 90) as database, Stage(args, "jobs") as stage:
        options = ("--postgres", database.address(), "--job-ms", "150", "--pause-ms", "50")
        instances = [stage.start("job-scheduler", name, SESSION_MS, "--name", name, *options) for name in NAMES]
        leader, _ = wait_until("a first leader", lambda: leader_after(instances, 0))
        wait_for_more(database, "of the first leader")
        leader = pause(leader, [one for one in instances if one is not leader], database)

        leader.kill_now()
        living = [one for one in instances if one is not leader]
        leader, took = wait_until("a leader after the killed one", lambda: leader_after(living, token_of(leader)))
        print("kill -9 of the leading instance; %s led after %.1f s" % (leader.name, took), flush=True)
        wait_for_more(database, "after the kill of an instance")

        server = stage.kill_leader()
        print(
            "%d more results within %.1f s" % (MORE, wait_for_more(database, "after the kill of a server")), flush=True
        )
        server.start()

        # The second that lives has its turn at once: the first one leaves the election.
        leader = max(living, key=token_of)
        (other,) = [one for one in living if one is not leader]
        leader.stop()
        took = wait_until("a leader after SIGTERM", lambda: token_of(other) > token_of(leader))[1]
        expect(took < SESSION_MS / 1000, "the next one led only after %.1f s" % took)
        wait_for_more(database, "after SIGTERM")
        other.stop()
        other.show()

        instances += check_silence(stage, options, database)
        results, leaderships = check_table(database, instances)
        check_reset(instances[-1], stage, options, database)
    return "%d results of %d leaderships in order, a paused leader refused" % (results, leaderships)
