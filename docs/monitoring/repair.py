#!/usr/bin/env python3
"""Takes a planner's alarms and has Kubernetes give a node no more pods while one of its
alarms is critical: repair.py HOST:PORT. Nothing here is needed but kubectl."""
import http.server
import json
import subprocess
import sys

critical = {}  # host: ids of its critical alarms


class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        alarm = event["data"]
        host, begun = alarm.get("host"), event["type"] == "dev.ringlight.alarm.begun"
        if not host or alarm["severity"] != "Critical":
            return self.answer(204)
        ids = critical.setdefault(host, set())
        had = bool(ids)
        ids.add(alarm["id"]) if begun else ids.discard(alarm["id"])
        if bool(ids) != had and subprocess.run(["kubectl", "cordon" if ids else "uncordon", host]).returncode:
            ids.discard(alarm["id"]) if begun else ids.add(alarm["id"])
            return self.answer(503)  # the planner asks again
        self.answer(204)

    def answer(self, status):
        self.send_response(status)
        self.end_headers()


host, port = sys.argv[1].rsplit(":", 1)
http.server.HTTPServer((host, int(port)), Hook).serve_forever()
