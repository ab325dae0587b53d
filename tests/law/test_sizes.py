"""What everybody who clones the repository has to fetch stays small."""

from tree import ROOT, SKIPPED

MODELS_BYTES = 24_000_000  # weights, tokenizers and the programs that made them


def bytes_below(folder):
    paths = [path for path in folder.rglob("*") if path.is_file() and not SKIPPED & set(path.parts)]
    return sum(path.stat().st_size for path in paths)


def test_the_models_folder_keeps_to_its_size():
    taken = bytes_below(ROOT / "models")
    assert 0 < taken <= MODELS_BYTES, f"models/ has {taken:,} bytes; it may have {MODELS_BYTES:,}"


def test_files_count_wherever_they_lie_but_not_what_python_leaves(tmp_path):
    (tmp_path / "a" / "__pycache__").mkdir(parents=True)
    for path, size in (("one", 3), ("a/two", 4), ("a/__pycache__/three", 5)):
        (tmp_path / path).write_bytes(b"x" * size)
    assert bytes_below(tmp_path) == 7
