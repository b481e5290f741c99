"""The Helm chart: it is linted, rendered with several sets of values, and checked against Kubernetes' schemas. The
plain manifests beside it are what it renders without values.

    python3 interop/run.py packages.chart [--update]      --update writes the plain manifests"""

import os
import subprocess
import tempfile

from harness.outcome import Mismatch, conclude, expect, expect_equal
from harness.peers import need
from harness.server import arguments
from packages.roots import PACKAGING

ARGS = arguments(__doc__, update={"action": "store_true"}).parse_args()
CHART = os.path.join(PACKAGING, "kubernetes", "chart")
PLAIN = os.path.join(PACKAGING, "kubernetes", "manifests", "ostler.yaml")
VERSIONS = ["1.29", "1.37"]
WANTED = ["readOnlyRootFilesystem: true", "runAsNonRoot: true", "path: /readyz", "kind: PodDisruptionBudget"]
HEAD = "# Made from the chart by `python3 interop/run.py packages.chart --update`.\n"
SETS = {
    "plain": [],
    "resized": ["--is-upgrade", "--set", "replicas=5,reconfig.secret=super"],
    "full": [
        "--set",
        "persistence.log.enabled=true,persistence.storageClass=fast,configuration.snapCount=5000,image.tag=1.2.3",
        "--set-json",
        'extraEnv=[{"name":"RUST_LOG","value":"warn"}]',
        "--set-json",
        'tolerations=[{"operator":"Exists"}]',
        "--set-json",
        'extraVolumes=[{"name":"tls","secret":{"secretName":"tls"}}]',
        "--set-json",
        'extraVolumeMounts=[{"name":"tls","mountPath":"/tls"}]',
        "--set-json",
        'podAnnotations={"a":"b"}',
    ],
}


def helm(*words: str) -> str:
    program = os.path.join(need("packages"), "bin", "helm")
    done = subprocess.run([program, *words], capture_output=True, text=True)
    if done.returncode:
        raise Mismatch("helm %s: %s%s" % (" ".join(words), done.stdout, done.stderr))
    return done.stdout


def validate(text: str, version: str) -> int:
    """Returns the number of resources."""
    program = os.path.join(need("packages"), "venv", "bin", "kubernetes-validate")
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write(text)
        f.flush()
        done = subprocess.run([program, "--strict", "-k", version, f.name], capture_output=True, text=True)
    said = done.stdout + done.stderr
    expect_equal(done.returncode, 0, "Kubernetes %s: %s" % (version, said))
    return said.count(" passed for resource ")


def check() -> str:
    helm("lint", "--strict", CHART)
    resources = 0
    for name, words in SETS.items():
        text = helm("template", "ostler", CHART, "--namespace", "default", *words)
        for version in VERSIONS:
            resources += validate(text, version)
        for wanted in WANTED:
            expect(wanted in text, "%s: no %s" % (name, wanted))
        expect_equal(text.count("kind: Job"), 2 if name == "resized" else 0, "%s: jobs" % name)
        if name == "plain":
            plain = HEAD + text
    try:
        helm("template", "ostler", CHART, "--set", "replicas=5")
        raise AssertionError("a chart that cannot resize takes 5 replicas")
    except Mismatch as refused:
        expect("replicas differs from initialSize" in str(refused), "the refusal: %s" % refused)
    if ARGS.update:
        with open(PLAIN, "w") as f:
            f.write(plain)
    with open(PLAIN) as f:
        expect(f.read() == plain, "the plain manifests are not those of the chart: run with --update")
    versions = ", ".join(VERSIONS)
    return "%d resources of %d sets of values fit the schemas of Kubernetes %s" % (resources, len(SETS), versions)


conclude(check)
