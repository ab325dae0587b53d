"""The limits of stage ceilings, measured with PyTorch: copying, reading, cuBLAS in bf16, launches in a stream and in a
CUDA graph."""
import argparse
import json
import time

import torch


class Clock:
    """Measures seconds on the device, or on the host without CUDA."""

    def __init__(self, device):
        self.cuda = device == "cuda"

    def seconds(self, call, runs):
        call()
        out = []
        for _ in range(runs):
            if self.cuda:
                begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                begin.record()
                call()
                end.record()
                end.synchronize()
                out.append(begin.elapsed_time(end) / 1e3)
            else:
                begin = time.perf_counter()
                call()
                out.append(time.perf_counter() - begin)
        return sorted(out)[len(out) // 2]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", action="store_true")
    args = parser.parse_args()
    clock, runs = Clock(args.device), 3 if args.tiny else 20
    count = 1 << (16 if args.tiny else 30)
    source = torch.randn(count, device=args.device)
    target = torch.empty_like(source)
    seconds = clock.seconds(lambda: target.copy_(source), runs)
    rows = [{"what": "copy", "bytes": 4 * count, "seconds": seconds, "bytes_per_s": 8 * count / seconds}]
    seconds = clock.seconds(lambda: torch.sum(source), runs)
    rows.append({"what": "read", "bytes": 4 * count, "seconds": seconds, "bytes_per_s": 4 * count / seconds})
    del source, target
    side = 128 if args.tiny else 8192
    a, b = (torch.randn(side, side, device=args.device, dtype=torch.bfloat16) for _ in range(2))
    seconds = clock.seconds(lambda: torch.matmul(a, b), runs)
    rows.append({"what": "bf16 matrices", "side": side, "seconds": seconds, "flops_per_s": 2 * side**3 / seconds})
    few = torch.zeros(32, device=args.device)
    calls = 500

    def add_all():
        for _ in range(calls):
            few.add_(1.0)

    rows.append({"what": "launch in a stream", "seconds": clock.seconds(add_all, runs) / calls})
    if clock.cuda:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            add_all()
        rows.append({"what": "launch in a graph", "seconds": clock.seconds(graph.replay, runs) / calls})
    name = torch.cuda.get_device_name() if clock.cuda else "cpu"
    print(json.dumps({"device": name, "torch": torch.__version__, "rows": rows}))


if __name__ == "__main__":
    main()
