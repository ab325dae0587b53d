"""What of the style is law: each rule is run over the tree, and proven on a snippet that breaks it."""

import pytest

from tree import code_only, files, hits

PRODUCT = ("core", "api", "app", "gpu", "hub", "tools")


def thread_primitives(path, text):
    """Threads meet in a few named places; nothing else spells a thread primitive."""
    places = (
        "core/concurrent/",
        "core/bridge/",
        "api/limits/request_book",
        "core/observe/",
        "core/base/log.",
        "core/base/log_writer.",
        "core/cpu/team/parallel_for",
        "core/engine/engine_thread",
        "gpu/runtime/host_ring",
        "gpu/runtime/host_threads",
        "app/",
        "hub/",
        "tools/bench/",
    )
    if path.startswith(places):
        return []
    words = (
        r"(atomic|mutex|shared_mutex|recursive_mutex|timed_mutex|thread|jthread|condition_variable|lock_guard|unique_lock"
        r"|scoped_lock|shared_lock|future|promise|async|call_once|once_flag|latch|barrier|semaphore|stop_token)"
    )
    return hits(rf"\bstd::(counting_|binary_)?{words}(_\w+)?\b|#\s*include\s*<{words}>|\bpthread_\w+\(", code_only(text))


def bare_statuses(path, text):
    """HTTP statuses that are answered with stand in one table: api/wire/errors.cc. hub/ and app/http/ read those of servers."""
    if path == "api/wire/errors.cc" or path.startswith(("hub/", "app/http/")):
        return []
    return hits(
        r"\b\w*(status|result|http_code)\w*\s*(=|==|!=|\(|\{|,)\s*[2-5]\d\d\b(?!\s*\*)"
        r"|http::status::(?!ok\b|continue_\b|unknown\b)\w+|\"HTTP/1\.[01] [2-5]\d\d",
        code_only(text),
    )


def environment(path, text):
    """Configuration is read once: in app/, and by the program of tools/ with the help of it."""
    return [] if path.startswith(("app/", "tools/main.cc")) else hits(r"\b(secure_)?getenv\b|\benviron\b", code_only(text))


def missing_card(path, text):
    """A header below core/, gpu/ or tools/ opens with its card: what it is, in a sentence."""
    if not path.startswith(("core/", "gpu/", "tools/")) or not path.endswith((".h", ".cuh")):
        return []
    lines = text.splitlines() or [""]
    opens = lines[0].startswith("// ") and len(lines[0]) >= 20 and "copyright" not in lines[0].lower()
    return [] if opens and "#pragma once" in lines else ["1: opens with no card, or has no #pragma once"]


LONG_FILES = {
    "core/text/unicode/unicode_tables.cc": "generated tables",
}


def long_file(path, text):
    """A file holds one idea: past 450 lines it holds two."""
    num_lines = text.count("\n")
    return [f"{num_lines} lines"] if num_lines > 450 and path not in LONG_FILES else []


def device_conditionals(path, text):
    """A device is a directory: no preprocessor question about one outside gpu/."""
    return [] if path.startswith("gpu/") else hits(r"^\s*#\s*(if|ifdef|ifndef|elif)\b.*CUDA", code_only(text))


def counted_bits(path, text):
    """Kernels count bits by builtins: of 64 bits nvcc 13.0 makes a constant of what <bit> has."""
    if not path.startswith(("gpu/kernels/", "gpu/device/")):
        return []
    return hits(r"\bstd::(count[lr]_(zero|one)|popcount|bit_width|bit_ceil|bit_floor|has_single_bit)\b", code_only(text))


def structured_await(path, text):
    """The result of co_await is named: compilers miscompile a structured binding of it in loops."""
    return hits(r"\bauto\s*&{0,2}\s*\[[^\]]*\]\s*=\s*co_await", code_only(text))


def sleeping_tests(path, text):
    """A unit test never sleeps: it owns the clock."""
    in_tests = path.startswith("tests/") and path.endswith("_test.cc")
    return hits(r"\b(sleep_for|sleep_until|usleep|nanosleep)\b", code_only(text)) if in_tests else []


def machine_paths(path, text):
    """Nothing in the tree knows whose machine it was written on."""
    return hits(r"(?<![\w.:/}])/(work|root|Users|home)/\w", text)


ROOT_FILES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CMakeLists.txt", "CMakePresets.json", "layers.txt")
EVERYTHING = (*PRODUCT, "tests", "docs", "deploy", "helm", "loadtest", "models", "cmake", ".ci", *ROOT_FILES)
TEXTS = (".h", ".cc", ".cu", ".cuh", ".md", ".py", ".sh", ".txt", ".cmake", ".json", ".yaml", ".yml", ".toml", "run")

RULES = [  # rule, where it holds, a path and a text that break it, a text that does not
    (thread_primitives, PRODUCT, "core/kv/pool.h", "std::atomic<int> users_;", "// std::atomic<int> is not for us"),
    (thread_primitives, PRODUCT, "api/http/a.cc", "#include <mutex>", '#include "core/concurrent/gate.h"'),
    (thread_primitives, PRODUCT, "core/model/a.cc", "std::lock_guard lock(m);", "std::this_thread_is_ours();"),
    (bare_statuses, PRODUCT, "api/http/a.cc", "response.result(404);", "response.result(status_of(code));"),
    (bare_statuses, PRODUCT, "api/http/a.cc", "int status = 503;", "const int rows = 503;"),
    (bare_statuses, PRODUCT, "api/http/a.cc", "return http::status::bad_request;", "return http::status::ok;"),
    (environment, PRODUCT, "core/cpu/a.cc", 'std::getenv("THREADS")', "config.threads"),
    (missing_card, PRODUCT, "core/kv/a.h", "#pragma once\n", "// The blocks one sequence holds, in order.\n#pragma once\n"),
    (missing_card, PRODUCT, "core/kv/a.h", "// The blocks one sequence holds, in order.\n", "// What a sequence holds, in order.\n#pragma once\n"),
    (long_file, PRODUCT, "core/kv/a.cc", "int a;\n" * 451, "int a;\n" * 450),
    (device_conditionals, PRODUCT, "core/cpu/a.cc", "#ifdef __CUDACC__", "#ifdef NDEBUG"),
    (counted_bits, PRODUCT, "gpu/kernels/a.h", "int k = std::countl_zero(mass);", "int k = __builtin_clzll(mass);"),
    (structured_await, PRODUCT, "api/http/a.cc", "auto [ec, n] = co_await read();", "auto got = co_await read();"),
    (sleeping_tests, ("tests",), "tests/core/kv/a_test.cc", "std::this_thread::sleep_for(1s);", "clock.advance(1s);"),
    (machine_paths, EVERYTHING, "README.md", "cd /" + "home/ann/quire", "cd quire; see https://example.org/" + "home/ann"),
]


def broken(rule, places):
    suffixes = TEXTS if places is EVERYTHING else (".h", ".cc", ".cu", ".cuh")
    existing = files(*places, suffixes=suffixes)
    return [f"{path}:{hit}" for path, text in existing for hit in rule(path, text)]


@pytest.mark.parametrize("rule, places", {r[0]: r[1] for r in RULES}.items(), ids=lambda v: getattr(v, "__name__", ""))
def test_rule_holds(rule, places):
    found = broken(rule, places)
    assert not found, f"{rule.__doc__}\n" + "\n".join(found)


@pytest.mark.parametrize("rule, places, path, bad, good", RULES, ids=[f"{r[0].__name__}-{i}" for i, r in enumerate(RULES)])
def test_rule_bites(rule, places, path, bad, good):
    assert len(rule(path, bad)) == 1
    assert rule(path, good) == []


def test_the_rule_of_threads_knows_its_places():
    assert thread_primitives("core/concurrent/gate.h", "std::atomic<int> a;") == []


def test_long_files_on_the_list_exist_and_are_long():
    listed = {path: text.count("\n") for path, text in files(*LONG_FILES)}
    assert all(listed.get(path, 451) > 450 for path in LONG_FILES)
