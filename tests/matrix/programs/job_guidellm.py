"""guidellm: a benchmark of eight requests, two at once, with its report."""

import json
import subprocess
import sys

from heard import check, model, question, tell, url

report = f"{question['home']}/report.json"
command = [f"{question['folder']}/bin/guidellm", "run",
           "--backend", f"kind=openai_http,target={url},model={model},request_format=/v1/chat/completions",
           "--profile", "kind=concurrent,streams=2", "--constraint", "kind=max_requests,count=8",
           "--data", "kind=synthetic_text,prompt_tokens=64,output_tokens=16", "--tokenizer", f"kind=hf_auto,model={question['model_folder']}",
           "--output", f"kind=json,path={report}", "--disable-console-interactive"]
subprocess.run(command, cwd=question["home"], stdout=sys.stderr, check=True)
with open(report) as file:
    metrics = json.load(file)["benchmarks"][0]["metrics"]
totals = metrics["request_totals"]
check("a report of eight requests, none of them failed", totals["successful"] == totals["total"] == 8)
check("sixteen tokens of each answer counted", metrics["output_token_count"]["successful"]["mean"] == 16)
tell()
