"""lm-eval: a task of log-likelihoods and one of generated text, from files of its own, by its command."""

import json
import pathlib
import subprocess
import sys

from heard import check, model, question, tell, api

home = pathlib.Path(question["home"])
capitals = [("France", "Paris"), ("Italy", "Rome"), ("Germany", "Berlin"), ("Spain", "Madrid"), ("Norway", "Oslo"), ("Japan", "Tokyo")]
towns = [town for _, town in capitals]
(home / "capitals.jsonl").write_text("".join(json.dumps({"land": land, "towns": towns, "right": towns.index(town), "town": town}) + "\n"
                                              for land, town in capitals))
common = "dataset_path: json\ndataset_kwargs:\n  data_files: {test: capitals.jsonl}\ntest_split: test\ndoc_to_text: 'The capital of {{land}} is'\n"
(home / "capital_choice.yaml").write_text(f"task: capital_choice\n{common}output_type: multiple_choice\ndoc_to_choice: towns\ndoc_to_target: right\n"
                                          "metric_list:\n  - metric: acc\n")
(home / "capital_text.yaml").write_text(f"task: capital_text\n{common}output_type: generate_until\ndoc_to_target: town\n"
                                        "generation_kwargs: {until: [\"\\n\", \".\"], max_gen_toks: 12, temperature: 0}\n"
                                        "metric_list:\n  - metric: exact_match\n")


def evaluated(kind, path, tasks, *more):
    said = home / f"results-{kind}"
    where = f"model={model},base_url={api}{path},num_concurrent=2,max_retries=1,tokenized_requests=False,tokenizer={question['model_folder']}"
    done = subprocess.run([sys.executable, "-m", "lm_eval", "run", "--model", kind, "--model_args", where, "--tasks", tasks,
                           "--include_path", str(home), "--output_path", str(said), *more], cwd=home, capture_output=True, text=True)
    print(done.stdout, done.stderr, file=sys.stderr)
    if done.returncode != 0:
        sys.exit(f"not so: lm_eval ended with {done.returncode}: {done.stderr.strip().splitlines()[-1][:300]}")
    return json.loads(next(said.rglob("results*.json")).read_text())["results"]


found = evaluated("local-completions", "/completions", "capital_choice,capital_text")
accuracy, exact = found["capital_choice"]["acc,none"], found["capital_text"]["exact_match,none"]
check(f"local-completions: log-likelihoods of {len(capitals)} questions with {len(towns)} choices, accuracy {accuracy:.2f}", accuracy > 0.5)
check("local-completions: generated answers", 0 <= exact <= 1)
found = evaluated("local-chat-completions", "/chat/completions", "capital_text", "--apply_chat_template")
check("local-chat-completions: generated answers", 0 <= found["capital_text"]["exact_match,none"] <= 1)
tell()
