"""Prints the results as text, Markdown and JSON."""

import os
import platform
import statistics
import subprocess

from lines import HIGHER


def median(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def number(value):
    if value is None:
        return "-"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def ratio(figure, java, ostler):
    """How many times better Ostler is: above 1 is better, whichever way the figure counts."""
    if not java or not ostler:
        return None
    return ostler / java if figure.better == HIGHER else java / ostler


def rows(chosen, results, names):
    """(line number, figure, one median per candidate, ratio)."""
    for line in chosen:
        for figure in line.figures:
            values = [median([found[figure.key] for found in results.get((line.number, name), [])]) for name in names]
            yield line.number, figure, values, ratio(figure, *values) if len(values) == 2 else None


def text(chosen, results, candidates):
    names = [candidate.name for candidate in candidates]
    head = "%-78s" % "" + "".join("%18s" % candidate.title for candidate in candidates)
    out = [head + ("%9s" % "better" if len(candidates) == 2 else "")]
    for line, figure, values, better in rows(chosen, results, names):
        cells = "".join("%18s" % (number(value) + " " + figure.unit) for value in values)
        out.append("%2s %-75s%s%s" % (line, figure.title, cells, "%8sx" % number(better) if better else ""))
    return "\n".join(out)


def markdown(chosen, results, candidates):
    names = [candidate.name for candidate in candidates]
    titles = [candidate.title for candidate in candidates]
    out = ["| | %s | Ratio |" % " | ".join(titles), "|---|" + "---:|" * (len(titles) + 1)]
    for _, figure, values, better in rows(chosen, results, names):
        cells = ["%s %s" % (number(value), figure.unit) for value in values]
        out.append("| %s | %s | %s |" % (figure.title, " | ".join(cells), number(better) + "x" if better else ""))
    return "\n".join(out + ["", machine()])


def as_json(chosen, results, candidates):
    names = [candidate.name for candidate in candidates]
    return {
        "machine": machine(),
        "candidates": {candidate.name: candidate.title for candidate in candidates},
        "medians": [
            {
                "line": line,
                "figure": figure.key,
                "title": figure.title,
                "unit": figure.unit,
                "better": figure.better,
                "values": dict(zip(names, values)),
                "times_better": better,
            }
            for line, figure, values, better in rows(chosen, results, names)
        ],
        "rounds": [{"line": line, "candidate": name, "found": found} for (line, name), found in results.items()],
    }


def machine():
    with open("/proc/cpuinfo") as f:
        models = [line.split(":", 1)[1].strip() for line in f if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    java = subprocess.run(["java", "-version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    return "%d cores (%s), %.0f GiB, Linux %s, %s" % (
        os.cpu_count() or 1,
        models[0] if models else platform.machine(),
        memory,
        platform.release(),
        java.splitlines()[0] if java else "no Java",
    )
