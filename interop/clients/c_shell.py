"""The C client's shell (cli_mt of Debian's zookeeper-bin): nodes of every kind, watches, and the end of its session."""

from harness.outcome import conclude, expect, expect_equal
from harness.peers import need
from harness.program import Program, die_and_freeze, wait_until_gone
from harness.protocol import digest_id
from harness.server import Server, arguments, work_folder
from harness.session import Session

SESSION_MS = 10000  # the shell asks for 30 s; the server's maxSessionTimeout decides


def shell(port):
    program = Program([need("cli_mt"), "127.0.0.1:%d" % port])
    program.wait_for(r"SESSION_EVENT state = CONNECTED_STATE")
    return program


def nodes(sh, see):
    sh.ask("create /a", r"rc = 0\n\s*name = /a$")
    sh.ask("create /a", r"rc = -110$")
    sh.ask("create /no/parent", r"rc = -101$")
    sh.ask("create +e /a/e", r"name = /a/e$")
    sh.ask("create /a/e/child", r"rc = -108$")
    sh.ask("create +s /a/s-", r"name = /a/s-0000000001$")
    sh.ask("create +es /a/es-", r"name = /a/es-0000000002$")
    sh.ask("create +c /c", r"name = /c$")
    sh.ask("create +t=60000 /t", r"name = /t$")
    sh.ask("create +st=60000 /ts-", r"name = /ts-0000000003$")
    sh.ask("create2 /b", r"rc = 0\n(.*\n)*.*name = /b")
    sh.ask("set /b some data", r"rc = 0 Stat:\n(.*\n)*.*version=1")
    sh.ask("get /b", r"rc = 0\n(.*\n)*some data$")
    sh.ask("get /nope", r"rc = -101$")
    for name in ("e", "s-0000000001", "es-0000000002"):
        sh.ask("ls /a", r"rc = 0\n(.*\n)*\s*%s$" % name)
    sh.ask("ls2 /a", r"rc = 0\n(.*\n)*\s*version=0")
    sh.ask("exists /b", r"")
    sh.ask("sync /a", r"rc = 0$|/a")
    expect_equal(see.get("/b")[0], b"some data", "data of /b as another client sees it")
    expect(see.exists("/a/e").ephemeralOwner != 0, "/a/e has no owner")


def watches(sh, see):
    sh.ask("get /b", r"some data")
    see.set("/b", b"from elsewhere")
    sh.wait_for(r"CHANGED_EVENT.*for path /b$")
    sh.ask("ls /c", r"rc = 0")
    see.create("/c/child")
    sh.wait_for(r"CHILD_EVENT.*for path /c$")
    sh.send("wexists /later")
    sh.ask("get /b", r"from elsewhere")
    see.create("/later")
    sh.wait_for(r"CREATED_EVENT.*for path /later$")
    sh.ask("delete /b", r"DELETED_EVENT.*for path /b$")


def check():
    args = arguments(__doc__).parse_args()
    need("cli_mt")
    settings = {"maxSessionTimeout": SESSION_MS}
    with Server(args.server, work_folder("c-shell"), args.port, settings):
        see = Session(args.port)
        sh, second = shell(args.port), shell(args.port)
        nodes(sh, see)
        watches(sh, see)
        sh.ask("delete /a", r"rc = -111$")
        sh.ask("delete /a/s-0000000001", r"rc = 0$")
        see.create("/private", b"for bob", acl=[(1, "digest", digest_id(b"bob:secret"))])
        sh.ask("get /private", r"rc = -102$")
        sh.send("addauth digest bob:secret")
        sh.ask("get /private", r"^for bob$")
        see.close()

        second.ask("create +e /second", r"name = /second$")
        second.ask("quit", r"Quitting")
        expect_equal(second.finish(), 0, "exit code of `quit`")
        wait_until_gone(args.port, "/second", within=5)

        second = shell(args.port)
        second.ask("create +e /dying", r"name = /dying$")
        sh.ask("create +e /frozen", r"name = /frozen$")
        die_and_freeze(args.port, second, "/dying", sh, "/frozen", SESSION_MS)
        sh.wait_for(r"EXPIRED_SESSION_STATE")
    return "the C shell's commands, watches and sessions"


if __name__ == "__main__":
    conclude(check)
