"""The stages of gpu/measure.sh by group, as they are named with the simulated device."""
import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("QUIRE_BUILD_DIR", ROOT / "build" / "release"))
STAGES = {
    "truth": ["ceilings", "strict", "unit tests", "kernels", "families", "roofline"],
    "engine": ["gaps 1b", "gaps 8b", "serving tiny", "decode tiny bf16", "decode tiny int8", "torch ceilings", "transformers"],
    "answers": ["sanitizer", "kernels of 1b, 1 at 512", "kernels of 1b, 64 at 512", "kernels of 1b, 1 at 32768"]
    + [f"{stage} 1b {flag}" for flag in ("overlap off", "carveout 50", "linear-warpgroups off") for stage in ("gaps", "decode")]}
