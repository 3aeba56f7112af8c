"""A Ringlight job as a trainer sees it: events of the job API become calls.

Standard library only. A trainer gives an object with any of the methods

    degraded(change), replaced(change), left(change), restored(change)

and calls `step()` between two steps of its loop, which calls them for what has happened
since, in order. `Change` says who is which rank now and where the ranks of before are.
Nothing is called from another thread.
"""

import http.client
import json
import queue
import socket
import ssl
import threading
import time
import urllib.parse


class Missed(Exception):
    """More has happened than the planner keeps: begin from `job`, the job itself."""

    def __init__(self, job):
        super().__init__("more has happened to job %s than is kept" % job["id"])
        self.job = job


class Change:
    """One event after which ranks are other ones, or may be."""

    def __init__(self, event):
        self.event = event["event"]
        self.number = event["generation"]
        self.at = event["at_ms"] / 1000  # by the planner's clock
        self.before = event["before"]  # the event whose ranks map and lost are of
        self.members = [(node, gpu) for node, gpu in event["members"]]
        self.map = event["map"]
        self.lost = event["lost"]
        self.expect = event["expect"]
        self.by = event["by"]
        self.cause = event.get("cause", "")

    def rank_of(self, node, gpu):
        """The rank of a GPU now, None where it has none."""
        try:
            return self.members.index((node, gpu))
        except ValueError:
            return None

    def after(self, earlier):
        """Where the ranks of an earlier map are now: maps follow one another."""
        return [-1 if now < 0 else self.map[now] for now in earlier]


class _Unix(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Job:
    """One job of one planner, or of several: the next URL is asked when one fails."""

    def __init__(self, name, urls, trainer=None, context=None, after=0, owner=""):
        self.name, self.trainer, self._context, self._owner = name, trainer, context, owner
        self._urls = [urls] if isinstance(urls, str) else list(urls)
        self._last, self._events, self._ended = after, queue.Queue(), threading.Event()
        self._thread = None

    # What is asked for.

    def _connect(self, timeout):
        at = urllib.parse.urlsplit(self._urls[0])
        if at.scheme == "unix":
            return _Unix(at.path, timeout)
        if at.scheme == "https":
            return http.client.HTTPSConnection(at.hostname, at.port, timeout=timeout, context=self._context or ssl.create_default_context())
        return http.client.HTTPConnection(at.hostname, at.port, timeout=timeout)

    def _ask(self, path, timeout=15.0, say=None):
        c = self._connect(timeout)
        try:
            c.request("GET" if say is None else "POST", path, None if say is None else json.dumps(say))
            answer = c.getresponse()
            body = answer.read()
            if answer.status != 200:
                error = OSError("%s: %d %s" % (path, answer.status, body.decode(errors="replace").strip()))
                error.status = answer.status
                raise error
            return body
        finally:
            c.close()

    def _path(self, rest=""):
        return "/v1/jobs/" + urllib.parse.quote(self.name, safe="") + rest

    def get(self):
        """The job as it stands."""
        return json.loads(self._ask(self._path()))

    def wait(self, state="ready", seconds=600.0):
        """Waits until the job is in a state, and returns it."""
        end = time.monotonic() + seconds
        while True:
            try:
                job = self.get()
            except OSError as error:
                if getattr(error, "status", 503) != 503 or time.monotonic() > end:  # 503: the planner begins
                    raise
                self._urls.append(self._urls.pop(0))
                time.sleep(0.2)
                continue
            if job["state"] == state:
                return job
            if time.monotonic() > end:
                raise TimeoutError("job %s is %s, not %s, after %g s: %s" % (self.name, job["state"], state, seconds, job.get("cause", "")))
            time.sleep(0.05)

    # What happens.

    def follow(self):
        """Begins to listen; what was before `after` is not told."""
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        return self

    def close(self):
        self._ended.set()

    def _listen(self):
        while not self._ended.is_set():
            try:
                news = json.loads(self._ask(self._path("?watch=%d&wait_ms=5000" % self._last), timeout=15.0))
            except (OSError, http.client.HTTPException, ValueError):
                self._urls.append(self._urls.pop(0))
                self._ended.wait(0.2)
                continue
            if not news["complete"]:
                self._events.put(Missed(news["job"]))
                self._last = news["job"]["generation"]
                continue
            for event in news["events"]:
                self._last = event["generation"]
                self._events.put(event)

    def changes(self, seconds=0.0):
        """What has happened since it was asked last; waits so long for the first."""
        out = []
        try:
            event = self._events.get(timeout=seconds) if seconds > 0 else self._events.get_nowait()
            while True:
                if isinstance(event, Missed):
                    raise event
                if "members" in event:
                    out.append(Change(event))
                event = self._events.get_nowait()
        except queue.Empty:
            return out

    def step(self, seconds=0.0):
        """Calls the trainer for what has happened; returns how many calls that were."""
        calls = 0
        for change in self.changes(seconds):
            call = getattr(self.trainer, change.event, None)
            if call is not None:
                call(change)
                calls += 1
        return calls

    def resumed(self, number):
        """Says, of one rank, that all compute again after an event, restored: a planner learns what moving a ring costs."""
        try:
            self._ask(self._path("/resumed?owner=" + urllib.parse.quote(self._owner, safe="")), say={"generation": number})
        except (OSError, http.client.HTTPException):
            pass  # the job has changed again: nothing here depends on it
