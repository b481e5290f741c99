"""The npm client node-zookeeper-client (npm/check.js), and the end of its sessions."""

import os

from harness.outcome import conclude, expect_equal
from harness.peers import INTEROP, need, need_program
from harness.program import Program, die_and_freeze
from harness.server import Server, arguments, work_folder

SESSION_MS = 3000  # as in check.js


def check():
    args = arguments(__doc__).parse_args()
    modules = os.path.join(need("node"), "node_modules")
    script = os.path.join(INTEROP, "clients", "npm", "check.js")

    def program(*words):
        env = dict(os.environ, NODE_PATH=modules)
        return Program([need_program("node"), script, "127.0.0.1:%d" % args.port, *words], env=env)

    with Server(args.server, work_folder("npm"), args.port):
        everything = program()
        everything.wait_for(r"^all operations work$", timeout=60)
        expect_equal(everything.finish(), 0, "exit code of check.js")
        dying, frozen = program("hold", "/dying"), program("hold", "/frozen")
        dying.wait_for(r"^holding$")
        frozen.wait_for(r"^holding$")
        die_and_freeze(args.port, dying, "/dying", frozen, "/frozen", SESSION_MS)
        frozen.wait_for(r"^expired$")
    return "the npm client's operations, watches, locks and sessions"


if __name__ == "__main__":
    conclude(check)
