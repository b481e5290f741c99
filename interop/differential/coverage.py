"""Counts requests and error codes, so that a reader sees what was tested."""

from collections import Counter

from harness.protocol import ERRORS, EVENTS, OPS


class Coverage:
    def __init__(self):
        self.codes = Counter()  # (op, error code)
        self.events = Counter()
        self.situations = Counter()

    def situation(self, name):
        self.situations[name] += 1

    def event(self, fields):
        self.events[EVENTS.get(fields.get("type"), "?") + (" (catch-up)" if fields["zxid"] == -1 else "")] += 1

    def closed(self, request):
        self.situations["closed by the server after %s" % request.name] += 1

    def reply(self, request, reply):
        err = reply.get("err")
        self.codes[request.name, err] += 1
        outcome = err
        if request.name in ("multi", "multiRead"):
            for result in reply.get("results", ())[:-1]:
                self._part(request.name, dict(result))
                outcome = outcome or dict(result)["err"]
        if request.name == "multi" and err == 0:
            self.situations["a multi -> %s" % ("ok" if not outcome else "fails in one op")] += 1
        for tag in request.fields.get("tags", ()):
            self.situations["%s -> %s" % (tag, "ok" if not outcome else outcome)] += 1

    def _part(self, name, result):
        kind = {number: op for op, number in OPS.items()}.get(result["type"], "error")
        if result["type"] == -1:
            self.codes[name + ": part", result["err"]] += 1
        else:
            self.codes[name + ": " + kind, 0] += 1

    def table(self):
        codes = sorted({code for _, code in self.codes}, key=lambda c: -c)
        names = sorted({name for name, _ in self.codes}, key=lambda n: (":" in n, n))
        width = max(len(n) for n in names) if names else 10
        lines = ["Replies by opcode and error code", " " * width + "".join("%8d" % code for code in codes)]
        for name in names:
            cells = "".join("%8s" % (self.codes[name, code] or ".") for code in codes)
            lines.append(name.ljust(width) + cells)
        lines.append("codes: " + ", ".join("%d %s" % (c, ERRORS.get(c, "?")) for c in codes))
        lines.append("")
        lines.append("Events: " + ", ".join("%s %d" % pair for pair in sorted(self.events.items())))
        lines.append("")
        lines.append("Situations")
        lines += ["  %7d  %s" % (count, name) for name, count in sorted(self.situations.items())]
        return "\n".join(lines)
