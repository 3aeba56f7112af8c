"""Bypasses and replacements under docs/elastic/train.py: no process ends, every step's sum
is right, and the order of ranks is the walk of light through the simulated boards.

    elastic.py BIN BYPASSES REPLACEMENTS
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "../docs/elastic"))
from ringlight_job import Job  # noqa: E402

binaries, bypasses, replacements = os.path.abspath(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
tmp = tempfile.mkdtemp()
control, log, url = os.path.join(tmp, "boards"), os.path.join(tmp, "train.jsonl"), "unix:%s/http" % tmp
started = []


def start(*command):
    started.append(subprocess.Popen(command, cwd=tmp, stdout=open(os.path.join(tmp, "out"), "ab"), stderr=subprocess.STDOUT))
    return started[-1]


def boards(line):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(control)
        s.sendall((line + "\n").encode())
        answer = json.loads(s.makefile().read())
    if "error" in answer:
        raise OSError(answer["error"])
    return answer


def until(what, of, seconds=60.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = of()
        if found:
            return found
        time.sleep(0.02)
    raise TimeoutError("%s: not within %g s; light: %s" % (what, seconds, boards("walk")["closed"]))


def steps(order=None):
    with open(log) as f:
        lines = [json.loads(line) for line in f if line.endswith("\n")]  # the last may be half written
    wrong = [x for x in lines if x["what"] == "step" and not x["right"]]
    if wrong:
        raise AssertionError("a sum is wrong: %s" % wrong[0])
    return [x for x in lines if x["what"] == "step" and (order is None or x["order"] == order)]


def walked(members):
    """Whether light goes through exactly these, in this order."""
    want = [[int(node), gpu] for node, gpu in members]
    for ring in boards("walk")["closed"]:
        if len(ring) != len(want) or want[0] not in ring:
            continue
        at = ring.index(want[0])
        right = ring[at:] + ring[:at]
        left = [right[0]] + right[:0:-1]
        if want in (right, left):
            return True
    return False


def trained(change):
    """When every rank of an order has made a step in it."""

    def all_have():
        by = {x["rank"]: x["at"] for x in reversed(steps(change.number))}
        return max(by.values()) if len(by) == len(change.members) else 0

    return until("a step of all ranks of event %d" % change.number, all_have)


def main():
    subprocess.run([binaries + "/ocsctl", "fabric", "new", "-nodes", "16", "-gpus", "2", "-tp", "8", "-spares", "4", "-o", tmp + "/fabric.json"], check=True)
    broker = "127.0.0.1:%d" % free_port()
    start(binaries + "/ocs-planner", "run", "-fabric-file", "fabric.json", "-listen", broker, "-http", url, "-state", "planner.db")
    start(binaries + "/ocs-sim", "agents", "-fabric-file", "fabric.json", "-modules", "1", "-broker", "mqtt://" + broker, "-control", "unix:" + control)
    until("the boards", lambda: os.path.exists(control))
    job = Job("train", url)
    wish = ["-tp", "8", "-spares", "1", "-nodes", "0,1,2,3,4,5", "-wait", "0"]
    until("the planner takes the job", lambda: subprocess.run([binaries + "/ocsctl", "job", "submit", "train", "-http", url] + wish, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0)
    view = job.wait(seconds=60)
    print("job of %d GPUs: nodes %s, spare %s" % (view["gpus_total"], view["rings"][0]["nodes"], view["spares"]), flush=True)
    train = start(sys.executable, os.path.join(here, "../docs/elastic/train.py"), "--url", url, "--job", "train", "--hosts", "0,1,2,3,4,5", "--gpus", "2", "--log", log)
    until("the first step", lambda: os.path.exists(log) and len({x["rank"] for x in steps()}) == view["gpus_total"])
    news = Job("train", url, after=view["generation"]).follow()
    pids, took, passed, replaced = {x["pid"] for x in steps()}, [], 0, 0

    def next_change(wanted):
        """The next event of a kind, with those that came on the way."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            for change in news.changes(seconds=1.0):
                pending.append(change)
            while pending:
                change = pending.pop(0)
                if wanted(change):
                    return change
        raise TimeoutError("no such event within 60 s; the job is %s" % job.get()["state"])

    pending = []
    while passed < bypasses or replaced < replacements:
        ring = job.wait()["rings"][0]["nodes"]
        victim = ring[1 + (passed + replaced) % (len(ring) - 2)]
        boards("power off " + victim)
        lost = next_change(lambda c: c.event == "degraded" and c.lost)
        passed += 1
        if lost.expect != "replaced" and lost.members:
            # Nobody is there to take its place: the ring goes on without it.
            until("light in the order of event %d, %s" % (lost.number, lost.members), lambda: walked(lost.members), 5)
            took.append(trained(lost) - lost.at)
        boards("power on " + victim)
        back = next_change(lambda c: c.event == "restored")
        assert walked(back.members), "members of event %d are not the walk of light" % back.number
        took.append(trained(back) - back.at)
        if victim not in {node for node, _ in back.members}:
            replaced += 1
        print("node %s: %d ranks lost, %s expected; restored with %s, first step after %.2f s" % (victim, len(lost.lost), lost.expect, sorted({n for n, _ in back.members}), took[-1]), flush=True)
    assert train.poll() is None, "the trainer has ended"
    now = {x["pid"] for x in steps()}
    if not pids <= now:
        raise AssertionError("a process has gone")
    took.sort()
    said = subprocess.run([binaries + "/ocsctl", "audit", "list", "-broker", "mqtt://" + broker], stdout=subprocess.PIPE, text=True).stdout.count("resumed job train")
    print("it said %d times that it computes again" % said, flush=True)
    assert said >= 2, "the planner has not heard that the job computes again"
    print("%d bypasses, %d replacements, %d steps of %d processes, 0 restarted, 0 sums wrong, every order walked; from the event to the first step of all ranks: median %.2f s, most %.2f s"
          % (passed, replaced, len(steps()), len(now), took[len(took) // 2], took[-1]))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


try:
    main()
except Exception:
    for name in ("out", "train.jsonl"):
        if os.path.exists(os.path.join(tmp, name)):
            sys.stderr.write(subprocess.run(["tail", "-5", os.path.join(tmp, name)], stdout=subprocess.PIPE, text=True).stdout)
    raise
finally:
    for p in reversed(started):
        p.terminate()
    for p in started:
        try:
            p.wait(timeout=10)
        except subprocess.TimeoutExpired:
            p.kill()
    subprocess.run(["rm", "-rf", tmp])
