"""Writes the weights of a draft head, a pickle such as medusa_lm_head.pt, as safetensors beside it:

    python convert_head.py DIR/medusa_lm_head.pt

Needs torch and safetensors. Nothing in the pickle is run: it is read with weights_only, which takes tensors and plain
containers and refuses everything else.
"""
import argparse
import pathlib
import pickle
import sys

import torch
from safetensors.torch import save_file

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("pickle", type=pathlib.Path)
path = parser.parse_args().pickle
try:
    tensors = torch.load(path, map_location="cpu", weights_only=True)
except (OSError, RuntimeError, pickle.UnpicklingError) as error:
    sys.exit(f"{path} was not converted: {str(error).splitlines()[0]}")
if not isinstance(tensors, dict) or not all(isinstance(tensor, torch.Tensor) for tensor in tensors.values()):
    sys.exit(f"{path} was not converted: it holds something else than tensors by name")
# Tensors that share memory are written apart.
save_file({name: tensor.clone().contiguous() for name, tensor in tensors.items()}, path.with_suffix(".safetensors"))
print(f"{path.with_suffix('.safetensors')}: {len(tensors)} tensors")
