"""A training loop that goes on in another order of GPUs, without a restart of any process.

    train.py --url http://127.0.0.1:18880 --job train --hosts 0,1,2,3,4,5 --gpus 2

starts a process for every GPU of the hosts, members of the job and spares; on a real
cluster a launcher starts one `worker` on each. A process whose GPU has no rank waits.
PyTorch with gloo; with NCCL it is the same but for the backend's name.
"""

import argparse
import datetime
import json
import os
import signal
import socket
import time

import torch
import torch.distributed as dist

from ringlight_job import Job

PATIENCE = datetime.timedelta(seconds=20)


class Order:
    """Members by rank, and the event that said so."""

    def __init__(self, number, members):
        self.number, self.members = number, members


class Trainer:
    def __init__(self, host, gpu, job, store, log):
        self.me, self.job, self.store, self.log = (host, gpu), job, store, log
        self.order, self.wanted = None, None
        self.rank, self.done = None, 0
        self.weights = torch.zeros(1024)

    # What the job tells. Between `replaced` and `restored` light moves; the order of
    # before is as good as none, and the next one is built when it is there.

    def degraded(self, change):
        if change.lost:
            self.wanted = Order(change.number, change.members)

    def restored(self, change):
        self.wanted = Order(change.number, change.members)

    def leave(self):
        if dist.is_initialized():
            dist.destroy_process_group()
        self.order, self.rank = None, None

    def build(self):
        """Makes the process group of the order that is wanted; False: another is by now."""
        order = self.wanted
        if self.order is not None and order.members == self.order.members:
            self.wanted = None
            return True
        self.leave()
        if self.me not in order.members:
            self.wanted = None
            return True
        here = "%d/here" % order.number
        self.store.add(here, 1)
        while self.store.add(here, 0) < len(order.members):
            self.job.step(seconds=0.01)
            if self.wanted is not order:
                return False
        rank = order.members.index(self.me)
        dist.init_process_group("gloo", store=dist.PrefixStore(str(order.number), self.store), rank=rank, world_size=len(order.members), timeout=PATIENCE)
        self.order, self.rank, self.wanted = order, rank, None
        self.catch_up()
        if rank == 0:
            self.job.resumed(order.number)  # refused where that event was not restored
        return True

    def catch_up(self):
        """Who is new, or has missed the last step, takes the state of who has done most."""
        done = [torch.zeros(1, dtype=torch.int64) for _ in self.order.members]
        dist.all_gather(done, torch.tensor([self.done]))
        most = max(range(len(done)), key=lambda r: int(done[r]))
        dist.broadcast(self.weights, most)
        self.done = int(done[most])

    def train(self):
        """One step: every rank adds its own gradient, and all have the same sum."""
        n = len(self.order.members)
        gradient = torch.full_like(self.weights, float(self.rank + 1))
        dist.all_reduce(gradient)
        right = bool((gradient == n * (n + 1) / 2).all())
        self.weights += gradient
        self.done += 1
        self.say("step", rank=self.rank, order=self.order.number, ranks=n, done=self.done, right=right, weight=float(self.weights[0]))

    def say(self, what, **more):
        line = json.dumps(dict(more, what=what, me=self.me, pid=os.getpid(), at=time.time()))
        os.write(self.log, (line + "\n").encode())

    def run(self, pause):
        while True:
            try:
                self.job.step()
                if self.wanted is not None and not self.build():
                    continue
                if self.rank is None:
                    self.job.step(seconds=0.5)
                    continue
                self.train()
                time.sleep(pause)
            except RuntimeError as e:  # a peer has gone: who is left comes as an event
                self.say("broken", why=str(e).splitlines()[0][:200])
                self.leave()


def members(view):
    return [(host, gpu) for ring in view["rings"] for host, gpu in ring["gpu_order"]]


def worker(args, host, gpu, port):
    log = os.open(args.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    store = dist.TCPStore("127.0.0.1", port, is_master=False, timeout=PATIENCE)
    view = Job(args.job, args.url).wait()
    t = Trainer(host, gpu, None, store, log)
    t.job = Job(args.job, args.url, t, after=view["generation"]).follow()
    t.wanted = Order(view["generation"], members(view))
    t.run(args.pause)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--url", action="append", required=True, help="of the job API; several: a planner and its copies")
    p.add_argument("--job", required=True)
    p.add_argument("--hosts", required=True, help="with commas between, spares too")
    p.add_argument("--gpus", type=int, default=1, help="of a host")
    p.add_argument("--log", default="train.jsonl")
    p.add_argument("--pause", type=float, default=0.01, help="seconds between two steps")
    args = p.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    torch.set_num_threads(1)
    pids = []
    for host in args.hosts.split(","):
        for gpu in range(args.gpus):
            pid = os.fork()
            if pid == 0:
                worker(args, host, gpu, port)
            pids.append(pid)
    store = dist.TCPStore("127.0.0.1", port, is_master=True, wait_for_workers=False, timeout=PATIENCE)
    signal.signal(signal.SIGTERM, lambda *_: [os.kill(pid, signal.SIGKILL) for pid in pids])
    for pid in pids:
        os.waitpid(pid, 0)
    del store


if __name__ == "__main__":
    main()
