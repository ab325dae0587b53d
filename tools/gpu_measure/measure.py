"""Runs the stages of gpu/measure.sh. Each stage is a program with its own time-out, and gives one line of JSON.

A line has stage, ok, seconds, and the last JSON that the program printed (device, rows …); or skipped or error, with
the reason. Lines are written to $OUT/measure.jsonl, or build/measure/measure.jsonl. Only Python's standard library is
needed.

Stages are in three groups, each of which ends within nine minutes: truth (the device, correctness of results, time of
each kernel), engine (steps and servers of real shapes) and answers (sanitizers, hardware counters, flags against each
other). With --resume FILE, the lines of an earlier call are read from FILE, stages that succeeded there are not
repeated, and all lines are written to FILE as well.
"""
import argparse
import csv
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
MOST_S = 530  # maximum of a stage, and of a group: a lent machine may end a command after ten minutes
GROUPS = ("truth", "engine", "answers")
SHAPE = ("kernel", "of", "type", "rows", "positions")
LEAST_S = 5  # a stage is not begun with less time than this
SAID = 1500  # characters of a failed stage's output that are stored


class Skipped(Exception):
    """Raised by a stage that this machine cannot run, with the reason."""


def run(command, limit_s):
    """Returns exit status and output. After `limit_s` the command and its children are killed; the status is None."""
    process = subprocess.Popen([str(part) for part in command], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, errors="replace", start_new_session=True)
    try:
        said, _ = process.communicate(timeout=limit_s)
        return process.returncode, said
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        said, _ = process.communicate()
        return None, said


def sources_digest():
    """Hash of the sources of kernels, stages and device tests."""
    digest = hashlib.sha256()
    paths = [path for folder in ("gpu", "core", "cmake", "tools/gpu_measure", "tests/gpu", "tests/core", "tests/support") for path in (ROOT / folder).rglob("*")]
    for path in sorted([ROOT / "CMakeLists.txt", *paths]):
        if path.suffix in (".h", ".cc", ".cu", ".txt", ".cmake") and path.is_file():
            digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def shape_of(row):
    return tuple(str(row[key]) for key in SHAPE)


def expected_times(device):
    """Microseconds by shape if gpu/measured.csv has such a GPU (measured or extrapolated), else empty."""
    with (ROOT / "gpu" / "measured.csv").open() as file:
        table = list(csv.DictReader(file))
    name = device.lower().replace(" ", "_")
    column = next((column for column in table[0] if column not in SHAPE and name.startswith(column.removesuffix("_us").removesuffix("_expected"))), None)
    return {shape_of(row): float(row[column]) for row in table} if column and name else {}


def write_measured(lines):
    """Writes gpu/measured.csv from stage roofline on an H200.

    The times for an H100 are scaled by the ratio of the minimum times (gpu/predictions.csv).
    """
    with (ROOT / "gpu" / "predictions.csv").open() as file:
        least = {shape_of(row): float(row["h100_us"]) / float(row["h200_us"]) for row in csv.DictReader(file)}
    (rows,) = [line["rows"] for line in lines if line["stage"] == "roofline"]
    with (ROOT / "gpu" / "measured.csv").open("w") as file:
        file.write(",".join([*SHAPE, "nvidia_h200_us", "nvidia_h100_expected_us"]) + "\n")
        for row in rows:
            taken = 1e6 * row["seconds"]
            file.write(",".join([*shape_of(row), f"{taken:.1f}", f"{taken * least[shape_of(row)]:.1f}"]) + "\n")


def last_json(said):
    for line in reversed(said.splitlines()):
        if line.startswith("{"):
            try:
                return json.loads(line)
            except ValueError:
                return None
    return None


def faults(said):
    """The output's lines with compiler errors; without any, its end."""
    lines = [line for line in said.splitlines() if "error" in line]
    return "\n".join(lines)[:SAID] or said[-SAID:]


class Measuring:
    def __init__(self, args):
        self.args = args
        self.simulated = args.device == "simulated"
        self.server = "quire-simulated" if self.simulated else "quire"
        out = pathlib.Path(args.out or os.environ.get("OUT") or ROOT / "build" / "measure")
        out.mkdir(parents=True, exist_ok=True)
        self.file = out / "measure.jsonl"
        self.lines = []
        self.known = []  # lines of an earlier call
        if args.resume and args.resume.is_file():
            self.known = [json.loads(line) for line in args.resume.read_text().splitlines()]
        self.keep()
        self.began = time.monotonic()
        self.work = pathlib.Path(args.work)
        self.build = pathlib.Path(args.build).resolve() if args.build else ROOT / "build" / "cuda-release"

    # ---- parts of stages

    def stage(self, name, limit_s, body):
        """Runs body(limit_s) → (ok, fields). Any exception in it becomes the line's error."""
        if self.args.only and name not in self.args.only:
            return
        if any(line["stage"] == name and line["ok"] and "skipped" not in line for line in self.known):
            return
        started = time.monotonic()
        left_s = self.args.deadline - (started - self.began)
        limit_s = min(limit_s, self.args.limit or MOST_S, left_s)
        line = {"stage": name, "ok": False}
        try:
            if left_s < LEAST_S:
                raise Skipped(f"no time was left of {self.args.deadline:g} s")
            ok, fields = body(limit_s)
            line.update(fields)
            line["ok"] = bool(ok)
        except Skipped as why:
            line.update(ok=True, skipped=str(why))
        except Exception as error:  # also a fault of this script: the next stages still run
            line["error"] = f"{type(error).__name__}: {error}"
        line["seconds"] = round(time.monotonic() - started, 3)
        self.lines.append(line)
        self.keep()
        state = "skipped" if "skipped" in line else "ok" if line["ok"] else "FAILED"
        print(f"{name}: {state} in {line['seconds']} s", flush=True)

    def keep(self):
        done = {line["stage"] for line in self.lines}
        lines = [line for line in self.known if line["stage"] not in done] + self.lines
        for file in filter(None, (self.file, self.args.resume)):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def program(self, command, limit_s):
        """Runs a program whose last line of output is JSON. It succeeded if its exit status is 0."""
        code, said = run(command, limit_s)
        fields = last_json(said) or {}
        if "row" in fields or code is None:  # it ended before its last line: use the rows printed so far
            fields = {"rows": [json.loads(line)["row"] for line in said.splitlines() if line.startswith('{"row": ') and line.endswith("}}")]}
        if code is None:
            fields["error"] = f"not finished within {limit_s} s: {said[-SAID:]}"
        elif code not in (0, 1) or (code == 1 and not fields.get("failed")):
            fields["error"] = f"ended with {code}: {said[-SAID:]}"
        elif not fields:
            fields["error"] = f"printed no JSON: {said[-SAID:]}"
        return code == 0 and "error" not in fields, fields

    def python(self, script, *flags):
        return lambda limit_s: self.program([sys.executable, HERE / script, *flags], limit_s)

    def measured(self, stage, *flags):
        """A stage of quire_gpu_measure, which begins nothing new after 80 % of its time."""
        def body(limit_s):
            command = [self.tool("quire_gpu_measure"), stage, "--device", self.args.device, "--seconds", str(0.8 * limit_s)]
            if self.simulated:
                command.append("--tiny")
            return self.program([*command, *flags, *self.rates()], limit_s)
        return body

    def tool(self, name):
        for folder in self.folders():
            if (folder / name).is_file():
                return folder / name
        raise FileNotFoundError(f"{self.build / name}: the stage build did not make it")

    def folders(self):
        """Directories of programs, the newest first."""
        built = self.work / "built"
        said = built / "sources.sha256"
        again = [built] if said.is_file() and said.read_text() == sources_digest() else []
        return [*again, self.build, self.build / "tests"]

    def said(self, stage):
        return next((line for line in self.lines + self.known if line["stage"] == stage), {})

    def rates(self):
        """Flags with the rates of this machine, from the stages measured before."""
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
            return False, {**fields, "error": "nvidia-smi lists no GPU"}
        return ok, fields

    def make(self, limit_s):
        """Builds the preset for this machine's GPU, unless there is a bundle or --build."""
        if self.args.build or self.unpacked():
            again = self.other_sources()
            problem = self.make_of_carried(limit_s) if again else None
            if problem:
                return False, problem
            ok, fields = self.program([self.tool("quire_gpu_measure"), "types"], limit_s)
            return ok, {**fields, "built": "here, but for the server" if again else "before"}
        capability = (self.said("probe").get("gpu") or {}).get("capability", "9.0").replace(".", "")
        architecture = {"90": "90a"}.get(capability, capability)
        jobs = os.cpu_count() or 2
        for command in (["cmake", "--preset", "cuda-release", f"-DQUIRE_CUDA_ARCHITECTURES={architecture}", "-DQUIRE_TESTS=ON"],
                        ["cmake", "--build", self.build, "-j", jobs, "--target", self.server, "quire_gpu_measure_program",
                         "gpu_device_test"]):
            code, said = run(command, limit_s)
            if code != 0:
                return False, {"error": f"{' '.join(map(str, command[:3]))}: {faults(said)}"}
        return self.program([self.tool("quire_gpu_measure"), "types"], limit_s)

    def other_sources(self):
        """True if the bundle was built from sources that differ from this tree's."""
        said = self.build / "sources.sha256"
        return said.is_file() and said.read_text().strip() != sources_digest()

    def make_of_carried(self, limit_s):
        """Builds kernels, stages and device tests from this tree. Returns an error, or None.

        The server stays the bundle's, but uses these kernels.
        """
        if shutil.which("nvcc") is None or shutil.which("cmake") is None:
            return {"error": "the bundle was made from other sources than this tree, and nvcc or cmake is missing to compile these"}
        began, folder = time.monotonic(), self.work / "built"
        generator = ["-G", "Ninja"] if shutil.which("ninja") else []
        for command in (["cmake", "-S", ROOT, "-B", folder, *generator, "-DQUIRE_GPU_ONLY=ON", f"-DQUIRE_CARRIED={self.build / 'carried'}",
                         "-DQUIRE_CUDA_ARCHITECTURES=90a", "-DCMAKE_BUILD_TYPE=Release"],
                        ["cmake", "--build", folder, "-j", os.cpu_count() or 2, "--target", "quire_gpu_measure_program", "gpu_device_test"]):
            code, output = run(command, limit_s - (time.monotonic() - began))
            if code != 0:
                return {"error": f"{' '.join(map(str, command[:3]))}: {faults(output)}"}
        (library,) = folder.rglob("libquire_gpu_kernels.so")
        shutil.copy(library, self.build / "lib" / library.name)
        (folder / "sources.sha256").write_text(sources_digest())
        return None

    def unpacked(self):
        """Unpacks a bundle (bundle.sh), if there is one, and measures with its programs. True if there is."""
        packed = ROOT / "build" / "measure-bundle.tar.xz"
        if not packed.is_file():
            return False
        folder = self.work / "bundle"
        if not (folder / "quire_gpu_measure").is_file():
            with tarfile.open(packed) as bundle:
                bundle.extractall(folder, filter="data")
        self.build = folder
        return True

    def unit_tests(self, limit_s):
        """Runs the tests of the ops on the device; elsewhere they run on the simulator."""
        name = "gpu_test" if self.simulated else "gpu_device_test"
        try:
            test = self.tool(name)
        except FileNotFoundError as missing:
            raise Skipped(f"there is no {name} in {self.build}") from missing
        # In the tests of ranks, each rank is a stream of one GPU, and their kernels wait for each other: each stream
        # needs its own hardware queue, and all kernels must be loaded before. A failure there leaves the device
        # unusable, so these tests run last, in their own process. The fake NCCL library needs host memory.
        os.environ.update(CUDA_DEVICE_MAX_CONNECTIONS="32", CUDA_MODULE_LOADING="EAGER")
        ranks = "*Sharded*:*Exchange*:*Nccl*"
        chosen = ["SimulatedDevice.*:DeviceMemory.*"] if self.simulated else [f"-{ranks}", f"{ranks}-Nccl.*:*ByNccl*"]
        began, tests, rows, said_of = time.monotonic(), 0, [], []
        for choice in chosen:
            report = self.file.parent / "unit.json"
            report.unlink(missing_ok=True)
            code, said = run([test, f"--gtest_output=json:{report}", f"--gtest_filter={choice}"], limit_s - (time.monotonic() - began))
            if code is None or not report.is_file():
                last = [line for line in said.splitlines() if line.startswith("[ RUN")][-1:]
                rows.append({"what": name, "failed": f"{choice}: no report; {''.join(last)}"})
                said_of.append(said[-SAID:])
                continue
            found = json.loads(report.read_text())
            report.unlink()
            tests += found["tests"]
            for suite in found["testsuites"]:
                for one in suite["testsuite"]:
                    if one.get("failures"):
                        rows.append({"what": name, "failed": f"{suite['name']}.{one['name']}", "why": one["failures"][0]["failure"][:300]})
        fields = {"rows": rows, "tests": tests, "failed": len(rows)}
        if said_of:
            fields["said"] = said_of
        return not rows, fields

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
            self.stage(name, 90, self.measured("decode", "--model", model, "--quantize", quantize))

    def serving(self, model):
        """A stage: a server with random weights in this shape, or with --serve-model, under load."""
        tiny = ["--tiny"] if self.simulated else []

        def body(limit_s):
            began, checkpoint = time.monotonic(), self.args.serve_model
            if checkpoint is None:
                checkpoint = self.work / f"checkpoint-{model}"
                if not (checkpoint / "model.safetensors").is_file():
                    ok, fields = self.program([sys.executable, HERE / "random_checkpoint.py", model, checkpoint], limit_s)
                    if not ok:
                        return ok, fields
            return self.program([sys.executable, HERE / "serving.py", "--quire", self.build / self.server, "--device", self.args.device,
                                 "--model", checkpoint, *tiny], limit_s - (time.monotonic() - began))
        return body

    def families(self, limit_s):
        few = ["--tiny", "--only", "gemma2,opt-tied-without-biases-bf16"] if self.simulated else []
        return self.program([sys.executable, HERE / "families.py", "--quire", self.build / self.server, "--device", self.args.device,
                             "--seconds", str(0.6 * limit_s), *few], limit_s)

    @staticmethod
    def skip(why):
        def body(_):
            raise Skipped(why)
        return body

    def sanitize(self, limit_s):
        tool = shutil.which("compute-sanitizer")
        if self.simulated or tool is None:
            raise Skipped("there is no compute-sanitizer" if tool is None else "the simulated device is no GPU")
        rows, kinds = [], ("memcheck", "racecheck", "initcheck", "synccheck")
        for kind in kinds:
            code, said = run([tool, "--tool", kind, "--error-exitcode", "9", self.tool("quire_gpu_measure"), "kernels",
                              "--device", self.args.device, "--middle", "--seconds", str(0.6 * limit_s / len(kinds))], limit_s / len(kinds))
            found = last_json(said) or {}
            rows.append({"what": kind, "ok": code == 0, "cases": len(found.get("rows", [])), "all": found.get("all", False),
                         "said": said[-400:] if code != 0 else ""})
        return all(row["ok"] for row in rows), {"rows": rows}

    def truth(self):
        self.stage("ceilings", 60, self.measured("ceilings"))
        self.stage("strict", 90, self.measured("strict"))
        self.stage("unit tests", 200, self.unit_tests)
        self.stage("kernels", 120, self.measured("kernels"))
        self.stage("families", 120, self.families)
        self.stage("roofline", 120, self.roofline)

    def engine(self):
        torch = ["--device", "cpu", "--tiny"] if self.simulated else []
        self.stage("gaps 1b", 40, self.measured("gaps", "--model", "1b"))
        self.stage("gaps 8b", 60, self.measured("gaps", "--model", "8b"))
        for model in ("tiny",) if self.simulated else ("1b", "8b"):
            self.stage(f"serving {model}", 150, self.serving(model))
        self.decoding()
        self.stage("torch ceilings", 60, self.python("torch_ceilings.py", *torch))
        self.stage("transformers", 120, self.python("transformers_steps.py", *torch))

    def answers(self):
        self.stage("sanitizer", 200, self.sanitize)
        for sequences, context in ((1, 512), (64, 512), (1, 32768)):
            self.stage(f"kernels of 1b, {sequences} at {context}", 60, self.count("--model", "1b", "--sequences", sequences, "--context", context))
        for flag, value in (("--overlap", "off"), ("--carveout", "50"), ("--linear-warpgroups", "off")):
            self.stage(f"gaps 1b {flag[2:]} {value}", 40, self.measured("gaps", "--model", "1b", flag, value))
            self.stage(f"decode 1b {flag[2:]} {value}", 60, self.measured("decode", "--model", "1b", flag, value))

    def roofline(self, limit_s):
        """Measures each kernel's time, and its ratio to the time of such a GPU in gpu/measured.csv."""
        ok, fields = self.measured("roofline")(limit_s)
        before = expected_times(fields.get("device", ""))
        for row in fields.get("rows", []):
            if expected := before.get(shape_of(row)):
                row["of_measured"] = 1e6 * row["seconds"] / expected
        return ok, fields

    def count(self, *flags, kernels=220):
        """A stage: time of each kernel of a step, from the GPU's hardware counters (Nsight Compute)."""
        def body(limit_s):
            tool = shutil.which("ncu")
            if self.simulated or tool is None:
                raise Skipped("there is no ncu" if tool is None else "the simulated device is no GPU")
            code, said = run([tool, "--clock-control", "none", "--cache-control", "none", "--csv", "--page", "raw", "--metrics",
                              "gpu__time_duration.sum", "-c", kernels, self.tool("quire_gpu_measure"), "gaps", "--device", self.args.device,
                              *flags], limit_s)
            table = [line for line in csv.reader(said.splitlines()) if len(line) > 5]
            if not table or "Kernel Name" not in table[0]:
                return False, {"error": f"ended with {code}: {said[-SAID:]}"}
            name, taken = table[0].index("Kernel Name"), table[0].index("gpu__time_duration.sum")
            unit = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "usecond": 1e-6, "nsecond": 1e-9}.get(table[1][taken], 1e-9)
            seconds = {}
            for line in table[2:]:
                seconds.setdefault(line[name], []).append(float(line[taken].replace(",", "")) * unit)
            rows = [{"what": kernel.replace("quire::gpu::", ""), "count": len(all), "seconds": sorted(all)[len(all) // 2], "all_s": sum(all)}
                    for kernel, all in seconds.items()]
            return True, {"rows": sorted(rows, key=lambda row: -row["all_s"])}
        return body

    def all(self):
        self.stage("probe", 60, self.probe)
        self.stage("build", 530, self.make)
        if not self.lines and self.args.build is None:
            self.unpacked()  # probe and build were done in an earlier call
        for group in GROUPS:
            if self.args.group in (None, group):
                getattr(self, group)()


def figure(line):
    """Summary of a stage in a few words."""
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
    slower = [row for row in rows if row.get("of_measured", 0) > 1.25]
    if any("of_measured" in row for row in rows):
        words.append(f"{len(slower)} slower than measured.csv by a quarter")
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
    parser.add_argument("--device", default="cuda", help="cuda, cuda:N, or simulated: small shapes, on the host [cuda]")
    parser.add_argument("--out", help="directory of measure.jsonl [$OUT, or build/measure]")
    parser.add_argument("--build", help="directory with quire and quire_gpu_measure: nothing is built")
    parser.add_argument("--only", type=lambda text: text.split(","), help="only these stages, comma-separated")
    parser.add_argument("--limit", type=float, help="maximum seconds of a stage")
    parser.add_argument("--serve-model", help="model that the serving stages serve [random weights]")
    parser.add_argument("--group", choices=GROUPS, help="only the stages of this group")
    parser.add_argument("--deadline", type=float, help="seconds after which no stage begins or continues [530 for a group, else none]")
    parser.add_argument("--resume", type=pathlib.Path, help="file of lines of an earlier call: stages that succeeded there are not repeated")
    parser.add_argument("--work", default=tempfile.gettempdir() + "/quire-measure", help="directory for unpacked bundles and for checkpoints")
    parser.add_argument("--write-measured", type=pathlib.Path, metavar="FILE", help="write gpu/measured.csv from these lines and exit")
    parser.add_argument("--say-sources", action="store_true", help="print the hash of the sources and exit")
    args = parser.parse_args()
    if args.write_measured:
        write_measured([json.loads(line) for line in args.write_measured.read_text().splitlines()])
        return
    if args.say_sources:
        print(sources_digest())
        return
    args.deadline = args.deadline or (MOST_S if args.group else float("inf"))
    measuring = Measuring(args)
    measuring.all()
    print(f"\n{measuring.file}")
    for line in measuring.lines:
        state = "skipped" if "skipped" in line else "ok" if line["ok"] else "FAILED"
        print(f"{line['stage']:<16} {state:<8} {line['seconds']:>8.1f} s  {figure(line)}")
    sys.exit(0 if all(line["ok"] for line in measuring.lines) else 1)


if __name__ == "__main__":
    main()
