"""Runs the stages of gpu/measure.sh: each a program with a time-out of its own, each a line of JSON.

A line: stage, ok, seconds, and what the program said last as JSON (device, rows …), or skipped or error with why. Lines go to
$OUT/measure.jsonl, or build/measure/measure.jsonl. Only the standard library is needed.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
MOST_S = 530  # of a stage: a machine that is lent may end a command after ten minutes
SAID = 1500  # characters of a failed stage's output that are kept


class Skipped(Exception):
    """A stage that this machine cannot do, and why."""


def run(command, limit_s, env=None):
    """Exit status and output; the command and whatever it started are gone after its time."""
    process = subprocess.Popen([str(part) for part in command], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, errors="replace", start_new_session=True, env={**os.environ, **(env or {})})
    try:
        said, _ = process.communicate(timeout=limit_s)
        return process.returncode, said
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        said, _ = process.communicate()
        return None, said


def last_json(said):
    for line in reversed(said.splitlines()):
        if line.startswith("{"):
            try:
                return json.loads(line)
            except ValueError:
                return None
    return None


class Measuring:
    def __init__(self, args):
        self.args = args
        self.simulated = args.device == "simulated"
        self.server = "quire-simulated" if self.simulated else "quire"
        out = pathlib.Path(args.out or os.environ.get("OUT") or ROOT / "build" / "measure")
        out.mkdir(parents=True, exist_ok=True)
        self.file = out / "measure.jsonl"
        self.file.write_text("")
        self.lines = []
        self.env = {}
        self.build = pathlib.Path(args.build).resolve() if args.build else ROOT / "build" / "cuda-release"

    # ---- what stages are made of

    def stage(self, name, limit_s, body):
        """body(limit_s) → (ok, fields); whatever goes wrong in it becomes the line's error."""
        if self.args.only and name not in self.args.only:
            return
        limit_s = min(limit_s, MOST_S) if not self.args.limit else min(limit_s, self.args.limit)
        started = time.monotonic()
        line = {"stage": name, "ok": False}
        try:
            ok, fields = body(limit_s)
            line.update(fields)
            line["ok"] = bool(ok)
        except Skipped as why:
            line.update(ok=True, skipped=str(why))
        except Exception as error:  # a stage's own fault is a line, too
            line["error"] = f"{type(error).__name__}: {error}"
        line["seconds"] = round(time.monotonic() - started, 3)
        self.lines.append(line)
        with self.file.open("a") as file:
            file.write(json.dumps(line) + "\n")
        state = "skipped" if "skipped" in line else "ok" if line["ok"] else "FAILED"
        print(f"{name}: {state} in {line['seconds']} s", flush=True)

    def program(self, command, limit_s):
        """A program that says JSON last: it went well where it ended with 0."""
        code, said = run(command, limit_s, self.env)
        fields = last_json(said) or {}
        if "row" in fields or code is None:  # it was ended, or ended itself, before it said all at once
            fields = {"rows": [json.loads(line)["row"] for line in said.splitlines() if line.startswith('{"row": ') and line.endswith("}}")]}
        if code is None:
            fields["error"] = f"no end within {limit_s} s: {said[-SAID:]}"
        elif code not in (0, 1) or (code == 1 and not fields.get("failed")):
            fields["error"] = f"ended with {code}: {said[-SAID:]}"
        elif not fields:
            fields["error"] = f"said no JSON: {said[-SAID:]}"
        return code == 0 and "error" not in fields, fields

    def python(self, script, *flags):
        return lambda limit_s: self.program([sys.executable, HERE / script, *flags], limit_s)

    def measured(self, stage, *flags):
        """A stage of quire_gpu_measure; it begins nothing new when four fifths of its time are over."""
        def body(limit_s):
            command = [self.tool("quire_gpu_measure"), stage, "--device", self.args.device, "--seconds", str(0.8 * limit_s)]
            if self.simulated:
                command.append("--tiny")
            return self.program([*command, *flags, *self.rates()], limit_s)
        return body

    def tool(self, name):
        path = self.build / name
        if not path.is_file():
            raise FileNotFoundError(f"{path}: the stage build did not make it")
        return path

    def said(self, stage):
        return next((line for line in self.lines if line["stage"] == stage), {})

    def rates(self):
        """This machine's, as measured before."""
        own, torch = self.said("ceilings").get("rows", []), self.said("torch ceilings").get("rows", [])
        copies = [row["bytes_per_s"] for row in own + torch if row["what"] == "copy"]
        flops = [row["flops_per_s"] for row in own + torch if "flops_per_s" in row]
        launches = [row["seconds"] for row in own if row["what"] == "launch"]
        flags = []
        for name, values, best in (("--bytes-per-s", copies, max), ("--flops-per-s", flops, max), ("--launch-s", launches, min)):
            if values:
                flags += [name, repr(best(values))]
        return flags

    # ---- the stages

    def probe(self, limit_s):
        ok, fields = self.program([sys.executable, HERE / "probe.py"], limit_s)
        if ok and not self.simulated and not fields.get("gpu"):
            return False, {**fields, "error": "nvidia-smi names no GPU"}
        return ok, fields

    def make(self, limit_s):
        """A bundle that was carried here (bundle.sh), or the preset for this machine's GPU."""
        bundle = ROOT / "build" / "measure-bundle"
        if self.args.build:
            return self.program([self.tool("quire_gpu_measure"), "types"], limit_s)
        if (bundle / "quire_gpu_measure").is_file():
            self.build = bundle
            self.env["LD_LIBRARY_PATH"] = str(bundle / "lib")
            code, said = run([bundle / "quire_gpu_measure", "types"], 60, self.env)
            if code == 0:
                return True, {**last_json(said), "built": "before, carried here"}
            self.env.clear()
            self.build = ROOT / "build" / "cuda-release"
        capability = (self.said("probe").get("gpu") or {}).get("capability", "9.0").replace(".", "")
        architecture = {"90": "90a"}.get(capability, capability)
        jobs = os.cpu_count() or 2
        for command in (["cmake", "--preset", "cuda-release", f"-DQUIRE_CUDA_ARCHITECTURES={architecture}", "-DQUIRE_TESTS=ON"],
                        ["cmake", "--build", self.build, "-j", jobs, "--target", self.server, "quire_gpu_measure_program",
                         "gpu_device_test"]):
            code, said = run(command, limit_s)
            if code != 0:
                return False, {"error": f"{' '.join(map(str, command[:3]))}: {said[-SAID:]}"}
        return self.program([self.tool("quire_gpu_measure"), "types"], limit_s)

    def unit_tests(self, limit_s):
        """The tests of the ops that run on the simulator, on the device instead."""
        name = "gpu_test" if self.simulated else "gpu_device_test"
        test = next((path for path in (self.build / name, self.build / "tests" / name) if path.is_file()), None)
        if test is None:
            raise Skipped(f"there is no {name} in {self.build}")
        report = self.file.parent / "unit.json"
        chosen = ["--gtest_filter=SimulatedDevice.*:DeviceMemory.*"] if self.simulated else []
        code, said = run([test, f"--gtest_output=json:{report}", *chosen], limit_s, self.env)
        if code is None or not report.is_file():
            return False, {"error": f"no report: {said[-SAID:]}"}
        found = json.loads(report.read_text())
        report.unlink()
        failed = [f"{suite['name']}.{test['name']}" for suite in found["testsuites"] for test in suite["testsuite"]
                  if test.get("failures")]
        return code == 0, {"rows": [{"what": name, "failed": one} for one in failed], "tests": found["tests"], "failed": len(failed)}

    def decoding(self):
        types = self.said("build").get("weights", ["bf16"])
        wanted = [("1b", "none"), ("8b", "none"), ("8b", "fp8"), ("8b", "int4"), ("8b", "int8")]
        if self.simulated:
            wanted = [("tiny", "none"), ("tiny", "int8")]
        for model, quantize in wanted:
            name = f"decode {model} {'bf16' if quantize == 'none' else quantize}"
            if quantize != "none" and quantize not in types:
                self.stage(name, 1, self.skip(f"no kernels for {quantize}"))
                continue
            self.stage(name, 300, self.measured("decode", "--model", model, "--quantize", quantize))

    @staticmethod
    def skip(why):
        def body(_):
            raise Skipped(why)
        return body

    def sanitize(self, limit_s):
        tool = shutil.which("compute-sanitizer")
        if self.simulated or tool is None:
            raise Skipped("there is no compute-sanitizer" if tool is None else "the simulated device is no GPU")
        rows = []
        for kind in ("memcheck", "racecheck", "initcheck", "synccheck"):
            code, said = run([tool, "--tool", kind, "--error-exitcode", "9", self.tool("quire_gpu_measure"), "kernels",
                              "--device", self.args.device, "--tiny"], limit_s / 4, self.env)
            rows.append({"what": kind, "ok": code == 0, "said": said[-400:] if code != 0 else ""})
        return all(row["ok"] for row in rows), {"rows": rows}

    def all(self):
        torch = ["--device", "cpu", "--tiny"] if self.simulated else []
        self.stage("probe", 60, self.probe)
        self.stage("build", 530, self.make)
        self.stage("ceilings", 120, self.measured("ceilings"))
        self.stage("torch ceilings", 120, self.python("torch_ceilings.py", *torch))
        self.stage("unit tests", 240, self.unit_tests)
        self.stage("kernels", 240, self.measured("kernels"))
        self.stage("roofline", 300, self.measured("roofline"))
        self.stage("strict", 240, self.measured("strict"))
        self.stage("gaps 1b", 120, self.measured("gaps", "--model", "1b"))
        self.stage("gaps 1b in turn", 120, self.measured("gaps", "--model", "1b", "--overlap", "off"))
        self.stage("gaps 8b", 180, self.measured("gaps", "--model", "8b"))
        self.decoding()
        self.stage("transformers", 300, self.python("transformers_steps.py", *torch))
        served = ["--quire", self.build / self.server, "--device", self.args.device]
        served += ["--model", self.args.serve_model] if self.args.serve_model else []
        self.stage("serving", 240, lambda limit_s: self.program(
            [sys.executable, HERE / "serving.py", *served, *(["--tiny"] if self.simulated else [])], limit_s))
        self.stage("sanitizer", 400, self.sanitize)


def figure(line):
    """What a stage comes to, in a few words."""
    for key in ("skipped", "error"):
        if key in line:
            return " ".join(str(line[key]).split())[:100]
    rows = line.get("rows", [])
    words = [f"{len(rows)} rows"]
    if "failed" in line:
        words.append(f"{line['failed']} failed")
    if not line.get("all", True):
        words.append("not all begun")
    of_least = sorted(row["of_least"] for row in rows if "of_least" in row)
    if of_least:
        words.append(f"of the least time: median {of_least[len(of_least) // 2]:.2f}, best {of_least[-1]:.2f}")
    if any("may_be_used" in row for row in rows):
        words.append(f"warpgroups {'as' if all(row.get('may_be_used', True) for row in rows) else 'NOT as'} single warps")
    for row in rows:
        if row.get("what") == "copy":
            words.append(f"copy {row['bytes_per_s'] / 1e12:.3f} TB/s")
        elif "flops_per_s" in row and "what" in row:
            words.append(f"{row['what']} {row['flops_per_s'] / 1e12:.1f} TF/s")
        elif row.get("what") in ("decode", "eager", "graph") and row.get("sequences") == 1:
            words.append(f"{row['tokens_per_s']:.1f} tok/s at {row['context']}")
    return "; ".join(words)[:160]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda", help="cuda, cuda:N, or simulated: everything tiny, on the host [cuda]")
    parser.add_argument("--out", help="directory of measure.jsonl [$OUT, or build/measure]")
    parser.add_argument("--build", help="directory with quire and quire_gpu_measure: nothing is built")
    parser.add_argument("--only", type=lambda text: text.split(","), help="these stages alone, comma separated")
    parser.add_argument("--limit", type=float, help="seconds that no stage may outlast")
    parser.add_argument("--serve-model", help="what the stage serving serves [the model inside the binary]")
    args = parser.parse_args()
    measuring = Measuring(args)
    measuring.all()
    print(f"\n{measuring.file}")
    for line in measuring.lines:
        state = "skipped" if "skipped" in line else "ok" if line["ok"] else "FAILED"
        print(f"{line['stage']:<16} {state:<8} {line['seconds']:>8.1f} s  {figure(line)}")
    sys.exit(0 if all(line["ok"] for line in measuring.lines) else 1)


if __name__ == "__main__":
    main()
