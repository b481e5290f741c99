"""Every command of ZooKeeper's own Java shell, of version 3.9 or 3.8, its watch events, and the end of its session."""

from harness.outcome import conclude, expect_equal
from harness.peers import LAUNCHER, need
from harness.program import Program, die_and_freeze
from harness.server import Server, arguments, work_folder

SESSION_MS = 6000


def shell(version, port):
    main = "org.apache.zookeeper.ZooKeeperMain"
    program = Program([LAUNCHER, version, "-c", main, "-timeout", str(SESSION_MS), "-server", "127.0.0.1:%d" % port])
    program.wait_for(r"state:SyncConnected type:None", timeout=30)
    return program


def event(kind, path):
    return r"WatchedEvent state:SyncConnected type:%s path:%s( |$)" % (kind, path)


def nodes(sh):
    sh.ask("create /a x", r"^Created /a$")
    sh.ask("create /a again", r"^Node already exists: /a$")
    sh.ask("create /no/parent x", r"^Node does not exist: /no/parent$")
    sh.ask("create -e /a/e x", r"^Created /a/e$")
    sh.ask("create /a/e/child x", r"^Ephemerals cannot have children: /a/e/child$")
    sh.ask("create -s /a/s- x", r"^Created /a/s-0000000001$")
    sh.ask("create -s -e /a/se- x", r"^Created /a/se-0000000002$")
    sh.ask("create -c /c", r"^Created /c$")
    sh.ask("create -t 60000 /t x", r"^Created /t$")
    sh.ask("create -s -t 60000 /ts- x", r"^Created /ts-0000000003$")
    sh.ask(
        "get -s /a",
        r"^x\n(.*\n)*dataVersion = 0\naclVersion = 0\nephemeralOwner = 0x0\ndataLength = 1\nnumChildren = 3$",
    )
    sh.send("set /a y")
    sh.ask("set -v 0 /a z", r"^version No is not valid : /a$")
    sh.ask("get /a", r"^y$")
    sh.ask("set -s /a \u00fcn\u00efcode", r"^dataVersion = 2$")
    sh.ask("get /a", r"^\u00fcn\u00efcode$")
    sh.ask("stat /a", r"^cversion = 3\n(.*\n)*numChildren = 3$")
    sh.ask("stat /a/e", r"^ephemeralOwner = 0x[1-9a-f]")
    sh.ask("ls /a", r"^\[e, s-0000000001, se-0000000002\]$")
    sh.ask("ls -s /a", r"^\[.*\]\s*cZxid = 0x")
    sh.ask("ls -R /", r"^/\n(.*\n)*/a/se-0000000002\n(.*\n)*/zookeeper/quota$")
    sh.ask("getAllChildrenNumber /a", r"^3$")
    sh.ask("getEphemerals", r"^\[(/a/e, /a/se-0000000002|/a/se-0000000002, /a/e)\]$")
    sh.ask("getEphemerals /zzz", r"^\[\]$")
    sh.ask("sync /a", r"^Sync is OK$")


def watches(sh):
    sh.ask("get -w /a", r"^\u00fcn\u00efcode$")
    sh.ask("set /a w", event("NodeDataChanged", "/a"))
    sh.ask("ls -w /a", r"^\[e,")
    sh.ask("create /a/w", event("NodeChildrenChanged", "/a"))
    sh.ask("stat -w /later", r"^Node does not exist: /later$")
    sh.ask("create /later", event("NodeCreated", "/later"))
    sh.ask("stat -w /later", r"^numChildren = 0$")
    sh.ask("delete /later", event("NodeDeleted", "/later"))
    sh.send("addWatch -m PERSISTENT_RECURSIVE /a")
    for n in range(2):
        sh.ask("set /a/w %d" % n, event("NodeDataChanged", "/a/w"))
    sh.ask("create /a/w/deep", event("NodeCreated", "/a/w/deep"))
    sh.ask("delete /a/w/deep", event("NodeDeleted", "/a/w/deep"))
    sh.ask("removewatches /a", event("PersistentWatchRemoved", "/a"))
    sh.ask("removewatches /c", r"NoWatcher|No such watch|KeeperErrorCode = No such watcher for /c")
    sh.send("addWatch -m PERSISTENT /c")
    for n in range(2):
        sh.ask("create /c/%d" % n, event("NodeChildrenChanged", "/c"))
    sh.ask("removewatches /c -a", event("PersistentWatchRemoved", "/c"))


def access(sh):
    sh.ask("whoami", r"^Auth scheme: User\nip: 127\.0\.0\.1$")
    sh.send("addauth digest bob:secret")
    sh.ask("whoami", r"^digest: bob$")
    sh.send("setAcl /a/w auth::cdrwa")
    sh.ask("getAcl -s /a/w", r"^'digest,'bob:.*=\n: cdrwa\n(.*\n)*aclVersion = 1$")
    sh.send("setAcl /a/w ip:127.0.0.1:r,digest:eve:x:a")
    sh.ask("set /a/w no", r"^(Insufficient permission|Authentication is not valid) : /a/w$")
    sh.ask("getAcl /a/w", r"^'ip,'127\.0\.0\.1\n: r\n'digest,'eve:x\n: a$")
    sh.ask("setAcl /a/w world:anyone:cdrwa", r"^(Insufficient permission|Authentication is not valid) : /a/w$")
    sh.ask("create /acl x nonsense:x:r", r"Acl is not valid")


def quotas(sh):
    sh.send("setquota -n 10 /a")
    sh.send("setquota -B 1000 /a")
    sh.ask(
        "listquota /a",
        r"^Output quota for /a count=10,bytes=-1=;byteHardLimit=1000;countHardLimit=-1\n"
        r"Output stat for /a count=5,bytes=\d+$",
    )
    sh.send("delquota /a")
    sh.ask("listquota /a", r"^quota for /a does not exist\.$")


def removal(sh):
    sh.ask("delete -v 7 /a", r"^version No is not valid : /a$")
    sh.ask("delete /a", r"^Node not empty: /a$")
    sh.send("deleteall /a")
    sh.ask("get /a", r"^Node does not exist: /a$")
    sh.ask("deleteall /a", r"^Node does not exist: /a$")


def rest(sh, version):
    sh.ask("version", r"^ZooKeeper CLI version: %s\." % version.replace(".", r"\."))
    sh.ask("reconfig -add server.9=127.0.0.1:1:2;3", r"^KeeperErrorCode = |^Reconfig is disabled|^No quorum")


def check():
    parser = arguments(__doc__)
    parser.add_argument("--version", choices=("3.9", "3.8"), default="3.9", help="of the shell (default: %(default)s)")
    args = parser.parse_args()
    need("zk" + args.version.replace(".", ""))
    with Server(args.server, work_folder("java-shell"), args.port):
        sh, second = shell(args.version, args.port), shell(args.version, args.port)
        nodes(sh)
        watches(sh)
        access(sh)
        quotas(sh)
        removal(sh)

        second.ask("create -e /second x", r"^Created /second$")
        sh.ask("stat -w /second", r"^ephemeralOwner = 0x[1-9a-f]")
        second.send("quit")
        expect_equal(second.finish(), 0, "exit code of `quit`")
        sh.wait_for(event("NodeDeleted", "/second"))

        second = shell(args.version, args.port)
        second.ask("create -e /dying x", r"^Created /dying$")
        sh.ask("create -e /frozen x", r"^Created /frozen$")
        die_and_freeze(args.port, second, "/dying", sh, "/frozen", SESSION_MS)
        sh.wait_for(r"WatchedEvent state:Expired type:None")

        last = shell(args.version, args.port)
        rest(last, args.version)
    return "the %s shell's commands, watches and sessions" % args.version


if __name__ == "__main__":
    conclude(check)
