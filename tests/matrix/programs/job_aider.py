"""aider over Chat Completions: environment variables, and openai/ before the model's name."""

from driving import TASK, project, run
from heard import api, check, model, tell

project()
quiet = ("--yes-always", "--no-analytics", "--no-check-update", "--no-show-release-notes", "--no-show-model-warnings", "--no-pretty")
said = run("aider", "--model", f"openai/{model}", *quiet, "--chat-mode", "ask", "--message", TASK, "notes.txt",
           OPENAI_API_BASE=api, OPENAI_API_KEY="none")
check("a turn that ended with the model's words", "Tokens:" in said)
tell()
