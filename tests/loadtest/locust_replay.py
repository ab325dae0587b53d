"""Sends requests at their times, each from a user of its own: locust -f locust_replay.py --headless -u N -r N

REQUESTS names {"url": …, "requests": [{"at_s": seconds since 1970, "body": …}]}. What locust measured of each goes to POINTS, a line of JSON each.
"""

import itertools
import json
import os
import pathlib
import time

import gevent
from locust import HttpUser, events, task
from locust.exception import StopUser

REPLAY = json.loads(pathlib.Path(os.environ["REQUESTS"]).read_text())
numbers, ended = itertools.count(), itertools.count(1)
points = open(os.environ["POINTS"], "w", encoding="utf-8")  # noqa: SIM115  until the process ends


class Replayer(HttpUser):
    host = REPLAY["url"].rsplit("/v1/", 1)[0]

    @task
    def send_one(self):
        one = REPLAY["requests"][next(numbers)]
        gevent.sleep(max(0.0, one["at_s"] - time.time()))
        with self.client.post(REPLAY["url"], data=one["body"], headers={"Content-Type": "application/json"}, catch_response=True) as answer:
            if answer.status_code != 200 or not answer.text.rstrip().endswith("data: [DONE]") or '"error"' in answer.text:
                answer.failure("no whole answer")
        if next(ended) == len(REPLAY["requests"]):
            self.environment.runner.quit()
        raise StopUser


@events.request.add_listener
def keep(response_time, exception, **_):
    points.write(json.dumps({"ms": response_time, "failed": exception is not None}) + "\n")
    points.flush()
