"""Claude Code over Messages: environment variables alone."""

import json

from driving import TASK, exports, noted, project, run
from heard import check, tell

project()
# It goes on behind an answer that is cut, three times; then the turn has failed.
settings = {**exports(noted("Claude Code")), "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "4096", "IS_SANDBOX": "1"}
how = ("--output-format", "json", "--dangerously-skip-permissions")
said = json.loads(run("claude", "-p", TASK, *how, **settings))
check("a turn that ended with the model's words", said["result"] and not said["is_error"])
said = json.loads(run("claude", "-c", "-p", "And in sums.py?", *how, **settings))
check("the session continued by a second turn", said["result"] and not said["is_error"] and said["session_id"])
tell()
