// Sends requests at their times, each from a virtual user of its own: REQUESTS=FILE k6 run --out json=POINTS k6_replay.js
// FILE is {"url": …, "requests": [{"at_s": seconds since 1970, "body": …}]}. http_req_duration is from sending a request to the end of its answer.
import { check, sleep } from "k6";
import exec from "k6/execution";
import http from "k6/http";

const replay = JSON.parse(open(__ENV.REQUESTS));

export const options = {
  scenarios: { replay: { executor: "per-vu-iterations", vus: replay.requests.length, iterations: 1, maxDuration: "10m" } },
};

export default function () {
  const one = replay.requests[exec.vu.idInTest - 1];
  sleep(Math.max(0, one.at_s - Date.now() / 1000));
  const answer = http.post(replay.url, one.body, { headers: { "Content-Type": "application/json" }, timeout: "120s" });
  check(answer, { right: (said) => said.status === 200 && said.body.trimEnd().endsWith("data: [DONE]") && !said.body.includes('"error"') });
}
