"""JOBS of Slurm under random cancels, requeues, signals to prologs, and kills of slurmd,
slurmctld, planner, watcher and boards, with Slurm's default settings; then the same seed on
the same cluster without Ringlight (no prolog, a topology that stays), to compare how long
nothing starts. Judged by squeue and sinfo, the scripts' own clock, the planner's events and
the boards' control socket.

    slurm-chaos.py FOLDER ROOT HTTP SEED JOBS PLANNER-PID PLANNER-COMMAND WATCH-COMMAND

FOLDER as Slurm sees it; ROOT, a folder with another release of Slurm, or "".
"""

import collections
import glob
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request

D, R, HTTP, seed, jobs, planner_pid, planner_command, watch_command = sys.argv[1:]
W, seed, jobs = R + D, int(seed), int(jobs)
NODES = ["n%02d" % i for i in range(20)]
PER = 4  # nodes of a ring
fence = ["chroot", R, "env", "PATH=" + os.environ["PATH"], "SLURM_CONF=%s/slurm.conf" % D] if R else ["env", "SLURM_CONF=%s/slurm.conf" % D]
random.seed(seed)
log = open(W + "/log/chaos.log", "w")


def note(*words):
    print("%.2f" % time.time(), *words, file=log, flush=True)


def sl(*words):
    try:
        p = subprocess.run(fence + list(words), capture_output=True, text=True, timeout=30)
        return p.stdout if p.returncode == 0 else None
    except subprocess.TimeoutExpired:
        return None


def get(path, wait=5):
    try:
        with urllib.request.urlopen(HTTP + path, timeout=wait) as r:
            return json.load(r)
    except (OSError, ValueError):
        return None


def boards(line):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(W + "/boards")
        s.sendall((line + "\n").encode())
        return json.loads(s.makefile().read())


def kill(pid, what=signal.SIGKILL):
    try:
        os.kill(pid, what)
        return True
    except (ProcessLookupError, ValueError):
        return False


def pidfile(path):
    try:
        return int(open(path).read())
    except (OSError, ValueError):
        return 0


def prologs():
    """Processes of running prologs, of slurmctld and of tasks: the shell that Slurm started, and its child; and what it is."""
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            words = open(path).read().split("\0")
        except OSError:
            continue
        for what, script, command in (("prolog", "/prolog", "prolog"), ("task's", "/task-prolog", "lit")):
            if D + script in words[:2] or words[:2] == [D + "/ocs-slurm", command]:
                yield int(path.split("/")[2]), what, "shell" if D + script in words[:2] else "itself"


class Run:
    def __init__(self, lit):
        self.lit, self.stop = lit, threading.Event()
        self.done, self.ids, self.events, self.seen = collections.Counter(), [], collections.defaultdict(list), set()
        self.off = {}  # boards: when one was last without power
        self.most, self.any, self.starts, self.doubles, self.dark = (0, ""), (0, ""), 0, [], []
        self.later = []  # (when, deed)
        self.down = set()

    # What is watched.

    def follow(self):
        at, aims = 0, random.Random(seed + 1)
        while not self.stop.is_set():
            n = get("/v1/events?watch=%d&wait_ms=2000" % at, 10)
            if n is None:
                time.sleep(0.2)
                continue
            for e in n["events"]:
                if "job" in e:
                    self.events[e["job"]].append((e["at_ms"], e["event"]))
                    if e["event"] == "ready" and aims.random() < 0.1:  # its script is about to begin
                        deed = ["scontrol", "requeue"] if aims.random() < 0.5 else ["scancel"]
                        threading.Timer(aims.uniform(0, 0.15), sl, deed + [e["job"].removeprefix("ring-")]).start()
                        self.done[deed[-1] + " on light"] += 1
            at = n["events"][-1]["number"] if n["events"] else n["number"]

    def began(self):
        """Scripts that began since the last look: their job and its time."""
        for path in sorted(glob.glob(W + "/out/began.*")):
            for line in open(path):
                key = (path.rsplit(".", 1)[1], line.strip())
                if line.endswith("\n") and key not in self.seen:
                    self.seen.add(key)
                    yield key[0], int(key[1].split()[0])

    def look(self):
        """Samples, four a second, how long one could begin and none did."""
        since, since_any, known = None, None, set()
        while not self.stop.wait(0.2):
            queue, nodes = sl("squeue", "-h", "-a", "-o", "%i|%T|%r|%D|%N|%V", "-S", "-p,i"), sl("sinfo", "-h", "-N", "-o", "%N|%T")
            now = time.time()  # it answers again: while slurmctld is away nothing could begin
            fresh = list(self.began())
            if self.lit:
                top = get("/v1/topology", 1)
                for job, at in fresh:
                    self.judge_walk(job, at)
            if queue is None or nodes is None or self.lit and top is None:
                since = since_any = None
                continue
            idle = {l.split("|")[0] for l in nodes.splitlines() if l.split("|")[1] == "idle"}
            rows = [l.split("|") for l in queue.splitlines()]
            on = collections.Counter()
            for r in rows:
                if r[1] in ("RUNNING", "CONFIGURING"):
                    on.update(expand(r[4]))
            self.doubles += [n for n, c in on.items() if c > 1]
            if self.lit:
                owner = collections.Counter(n for r in top["rings"] if r.get("job") for n in r["nodes"])
                self.doubles += ["light of " + str(n) for n, c in owner.items() if c > 1]
                rings = [r["nodes"] for r in top["rings"] if not r.get("job") and r["state"] == "in_service" and len(r["nodes"]) == PER]
            else:
                rings = [NODES[i:i + PER] for i in range(0, 16, PER)]
            whole = sum(set(r) <= idle for r in rings)
            waits = [int(r[3]) for r in rows if r[1] == "PENDING" and r[2] in ("None", "Priority", "Resources", "Nodes", "Reserved")]
            running = {r[0] for r in rows if r[1] in ("RUNNING", "CONFIGURING")}
            started = len(running - known) + len(fresh)
            known = running
            self.starts += len(fresh)
            first = bool(waits) and waits[0] <= PER * whole
            some = any(w <= PER * whole for w in waits)
            since = None if started or not first else since or now
            since_any = None if started or not some else since_any or now
            text = "%d rings idle, first wants %d nodes, %d wait; %s" % (whole, waits[0] if waits else 0, len(waits), self.last)
            if since and now - since > self.most[0]:
                self.most = (now - since, text)
            if since_any and now - since_any > self.any[0]:
                self.any = (now - since_any, text)
            if since and now - since > 5:
                if not (int(now * 4) % 8):
                    note("stretch", now - since, text, [r for r in rows if r[1] == "PENDING" and r[2] != "BeginTime"][:2], [r[:5] for r in rows if r[1] != "PENDING"], sorted(set(NODES) - idle), rings)

    last = "-"

    def judge_walk(self, job, at):
        """By the boards: light goes round just the nodes of a script that began."""
        j, answer = get("/v1/jobs/ring-" + job), boards("walk")
        if not j or j["state"] != "ready" or any(time.time() - t < 20 for t in self.off.values()):
            return  # over by now, or a board has lost its light
        closed = [{n for n, _ in ring} for ring in answer["closed"]]
        for r in j["rings"]:
            if {int(n[1:]) for n in r["nodes"]} not in closed:
                again = get("/v1/jobs/ring-" + job)
                if again and again["state"] == "ready":
                    self.dark.append((job, at, "no light round %s: %s" % (r["nodes"], answer["closed"])))
                return
        self.done["walks"] += 1

    # What is done.

    def at(self, seconds, deed):
        self.later.append((time.time() + seconds, deed))

    def slurmd(self, node):
        subprocess.run(fence + ["slurmd", "-N", node], stderr=subprocess.DEVNULL)
        self.down.discard(node)

    def slurmctld(self):
        """Starts it, again where its port was still another's."""
        while True:
            subprocess.run(fence + ["slurmctld"], stderr=subprocess.DEVNULL)
            time.sleep(0.3)
            if "UP" in (sl("scontrol", "ping") or ""):
                break
        self.down.discard("slurmctld")

    def start_planner(self):
        self.planner = subprocess.Popen(["bash", "-c", "exec " + planner_command])

    def start_watch(self):
        self.watch = subprocess.Popen(["bash", "-c", "exec " + " ".join(map(quoted, fence)) + " " + watch_command])

    def deed(self):
        """One random thing that goes wrong."""
        some = [("cancel", 4), ("requeue", 4), ("slurmd", 3), ("slurmctld", 2), ("prolog", 12), ("planner", 2), ("watcher", 2), ("board", 3)]
        what = random.choices([w for w, _ in some], [n for _, n in some])[0]
        dice = random.random()
        if what in ("prolog", "planner", "watcher", "board") and not self.lit:
            return
        alive = [l.split("|") for l in (sl("squeue", "-h", "-o", "%i|%T") or "").splitlines()]
        running = [i for i, s in alive if s in ("RUNNING", "CONFIGURING")]
        if what == "cancel" and alive:
            sl("scancel", alive[int(dice * len(alive))][0])
        elif what == "requeue" and running:
            sl("scontrol", "requeue", running[int(dice * len(running))])
        elif what == "slurmd":
            node = NODES[int(dice * len(NODES))]
            if node in self.down or not kill(pidfile("%s/spool/%s.pid" % (W, node))):
                return
            self.down.add(node)
            self.at(1 + 2 * dice, lambda: self.slurmd(node))
        elif what == "slurmctld":
            if "slurmctld" in self.down or not kill(pidfile(W + "/slurmctld.pid")):
                return
            self.down.add("slurmctld")
            self.at(0.5 + dice, self.slurmctld)
        elif what == "prolog":
            which = SIGNALS[int(dice * len(SIGNALS))]
            end = time.time() + 2  # until there is one
            while time.time() < end:
                found = sorted(prologs())
                if found:
                    hit, of, part = random.choice(found)
                    if kill(hit, which):
                        self.done["%s %s %s" % (which.name, of, part)] += 1
                        note(which.name, of, part, hit)
                    break
                time.sleep(0.002)
            else:
                return
        elif what == "planner":
            if "planner" in self.down:
                return
            kill(self.planner.pid if hasattr(self, "planner") else int(planner_pid))
            if hasattr(self, "planner"):
                self.planner.wait()
            self.down.add("planner")
            self.at(0.3 + dice, lambda: (self.start_planner(), self.down.discard("planner")))
        elif what == "watcher":
            self.watch.kill()
            self.watch.wait()
            self.start_watch()
        elif what == "board":
            node = NODES[int(dice * len(NODES))]
            if len([n for n in self.down if n.startswith("board")]) > 1 or "board" + node in self.down:
                return
            boards("power off " + node)
            self.off[node] = time.time() + 3600
            self.down.add("board" + node)
            self.at(2 + 6 * dice, lambda: (boards("power on " + node), self.off.update({node: time.time()}), self.down.discard("board" + node)))
        else:
            return
        self.done[what] += 1
        self.last = "last: %s at %.1f" % (what, time.time())
        note(what)

    def operator(self):
        """What people do without Ringlight, too: nodes that Slurm drained and jobs that it held, after a kill of its own, go on."""
        for l in set((sl("sinfo", "-h", "-N", "-o", "%N|%T|%E") or "").splitlines()):
            node, state, why = l.split("|", 2)
            if state.startswith(("drain", "down")) and not why.startswith("ringlight") and node not in self.down:
                sl("scontrol", "update", "NodeName=" + node, "State=RESUME")
                self.done["(resumed by hand)"] += 1
                note("resumed", node, why)
        for l in (sl("squeue", "-h", "-t", "PD", "-o", "%i|%r") or "").splitlines():
            if "held" in l.lower():
                sl("scontrol", "release", l.split("|")[0])
                self.done["(released by hand)"] += 1
                note("released", l)

    def due(self):
        """Does what is due, in a thread: Slurm's commands stand still while slurmctld is away."""
        while not self.stop.wait(0.05):
            for t, deed in sorted(self.later, key=lambda x: x[0]):
                if t <= time.time():
                    deed()
                    self.later.remove((t, deed))

    def run(self):
        begin = time.time()
        for path in glob.glob(W + "/out/began.*"):
            os.remove(path)
        if self.lit:
            self.start_watch()
        threads = [threading.Thread(target=self.look), threading.Thread(target=self.due)] + ([threading.Thread(target=self.follow)] if self.lit else [])
        for t in threads:
            t.start()
        deeds = random.Random(seed)
        sent, calm, hand = 0, begin + 3, begin + 5
        while True:
            if sent < jobs:
                k = deeds.choice([1, 1, 1, 2, 2, 3])
                ring = ["--switches=%d" % k] if SHAPE == "tree" else ["--segment=%d" % PER]
                out = sl("sbatch", "--parsable", "-o", D + "/out/%j", "-N%d" % (PER * k), *ring, D + "/chaos", "%.1f" % deeds.uniform(0.2, 2.5))
                if out:
                    sent += 1
                    self.ids.append(out.strip().split(";")[0])
            if time.time() > hand:
                self.operator()
                hand = time.time() + 3
            if time.time() > calm:
                queued = sl("squeue", "-h", "-o", "%i")
                if sent == jobs and queued == "" and not self.later:
                    break
                if queued and len(queued.split()) > 8 or sent < jobs:
                    self.deed()
                calm = time.time() + deeds.expovariate(1)
            # The last of those that were queued again waits for Slurm's own two minutes.
            if time.time() - begin > 900 + 3.0 * jobs:
                raise SystemExit("chaos: jobs do not end: %s" % sl("squeue"))
            time.sleep(0.05)
        self.took = time.time() - begin
        if self.lit:
            self.left()
        self.stop.set()
        for t in threads:
            t.join()
        list(self.began())
        if self.lit:
            for job, line in self.seen:
                self.judge(job, int(line.split()[0]))
            self.watch.terminate()
        return self

    def judge(self, job, at):
        """A script began dark unless its job was ready at that time, and has not been given back or asked anew since."""
        lit, kept = False, self.events["ring-" + job]
        for when, event in sorted(kept, key=lambda e: e[0]):
            if when > at:
                break
            if event == "ready":
                lit = True
            elif event in ("waiting", "reserved", "forming", "released"):
                lit = False
        if not lit:
            self.dark.append((job, at, kept))

    def left(self):
        end = time.time() + 60
        while time.time() < end:
            top, listed = get("/v1/topology"), get("/v1/jobs")
            nodes = sl("sinfo", "-h", "-N", "-o", "%N|%T|%E") or ""
            self.behind = (["job " + j["id"] for j in (listed or {"jobs": [{"id": "?"}]})["jobs"]] + os.listdir(W + "/notes")
                           + [l for l in nodes.splitlines() if l.split("|")[1] != "idle"] + [str(p) for p in prologs()]
                           + ["%d rings" % len(top["rings"])] * (top is None or sum(r["state"] == "in_service" for r in top["rings"]) != 4))
            if not self.behind:
                return
            time.sleep(0.5)


SIGNALS = [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGSEGV, signal.SIGQUIT, signal.SIGABRT, signal.SIGPIPE, signal.SIGUSR1, signal.SIGALRM, signal.SIGBUS, signal.SIGKILL]
SHAPE = os.environ.get("SHAPE", "tree")
quoted = json.dumps


def expand(text):
    """The nodes of a list as Slurm writes it: n[00-03,07],n19."""
    out = []
    for m in re.finditer(r"n(?:\[([^\]]*)\]|(\d+))", text):
        for part in (m.group(1) or m.group(2)).split(","):
            a, _, b = part.partition("-")
            out += ["n%02d" % i for i in range(int(a), int(b or a) + 1)]
    return out


open(W + "/chaos", "w").write('#!/bin/bash\necho "$(date +%%s%%3N) ${SLURM_RESTART_COUNT:-0}" >>%s/out/began.$SLURM_JOB_ID\nsleep $1\n' % D)
os.chmod(W + "/chaos", 0o755)
ours = Run(True).run()
print("with: %d jobs in %.0f s, %d scripts began, %d of them seen in the boards' light; %s" % (jobs, ours.took, len(ours.seen), ours.done.pop("walks", 0), ", ".join("%s %d" % x for x in sorted(ours.done.items()))))
print("with: began dark %d, nodes in two jobs %d, left behind %d, longest without a start while the first could begin %.1f s (%s); while any could %.1f s (%s)" % (len(ours.dark), len(ours.doubles), len(ours.behind), *ours.most, *ours.any), flush=True)
for x in ours.dark[:5] + ours.doubles[:5] + ours.behind[:9]:
    print(" ", x)
# The same without Ringlight.
sl("scontrol", "reconfigure")
conf = open(W + "/slurm.conf").read()
open(W + "/slurm.conf", "w").write("\n".join(l for l in conf.splitlines() if not l.startswith(("PrologSlurmctld", "EpilogSlurmctld", "TaskProlog"))) + "\n")
kill(pidfile(W + "/slurmctld.pid"))
time.sleep(1)
subprocess.run(fence + ["slurmctld"], stderr=subprocess.DEVNULL)
for n in NODES:
    kill(pidfile("%s/spool/%s.pid" % (W, n)))
time.sleep(1)
for n in NODES:
    subprocess.run(fence + ["slurmd", "-N", n], stderr=subprocess.DEVNULL)
while (sl("sinfo", "-h", "-o", "%T") or "").split() != ["idle"]:
    time.sleep(0.5)
random.seed(seed)
plain = Run(False).run()
print("without: %d jobs in %.0f s, %d scripts began; %s; longest without a start while the first could begin %.1f s (%s); while any could %.1f s (%s)" % (jobs, plain.took, len(plain.seen), ", ".join("%s %d" % x for x in sorted(plain.done.items())), *plain.most, *plain.any))
sys.exit(1 if ours.dark or ours.doubles or ours.behind or ours.most[0] >= 10 and ours.most[0] > plain.most[0] else 0)
