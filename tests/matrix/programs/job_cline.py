"""Cline over Chat Completions: a provider in providers.json."""

from driving import TASK, noted, project, run, write
from heard import check, tell

project()
write(".cline/data/settings/providers.json", noted("Cline"))
check("a turn that ended with the model's words", run("cline", "-P", "openai-compatible", TASK, CLINE_TELEMETRY_DISABLED="1"))
tell()
