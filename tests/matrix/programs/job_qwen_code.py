"""Qwen Code over Chat Completions: environment variables."""

import json

from driving import TASK, exports, noted, project, run, write
from heard import check, tell

project()
write(".qwen/settings.json", json.dumps({"privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False},
                                         "model": {"generationConfig": {"samplingParams": {"max_tokens": 64}}}}))
qwen, where = ("qwen", "--auth-type", "openai", "--yolo"), exports(noted("Qwen Code"))
check("a turn that ended with the model's words", run(*qwen, "-p", TASK, **where))
check("the session continued by a second turn", run(*qwen, "--continue", "-p", "And in sums.py?", **where))
tell()
