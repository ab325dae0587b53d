"""Continue's CLI over Chat Completions: a model in config.yaml."""

from driving import TASK, noted, project, run, write
from heard import check, tell

project()
config = write(".continue/config.yaml", noted("Continue").replace("maxTokens: 8192", "maxTokens: 64"))
quiet = {"CONTINUE_TELEMETRY_ENABLED": "0", "CONTINUE_ALLOW_ANONYMOUS_TELEMETRY": "0"}
cn = ("cn", "--config", config, "--auto")
check("a turn that ended with the model's words", run(*cn, "-p", TASK, **quiet))
check("the session continued by a second turn", run(*cn, "--resume", "-p", "And in sums.py?", **quiet))
tell()
