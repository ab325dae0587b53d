"""The series that vLLM's dashboards ask for count what vLLM's count."""

import re

import pytest


@pytest.fixture
def fresh(start_server):
    return start_server("--threads", 1)


def series(server):
    """name{labels but the model's} → value."""
    found = {}
    for line in server.get("/metrics").text.splitlines():
        match = re.match(r"([a-z0-9_:]+)(\{.*\})? (\S+)$", line)
        if match:
            labels = re.findall(r'(\w+)="([^"]*)"', match[2] or "")
            told = ",".join(f"{name}={value}" for name, value in sorted(labels) if name not in ("model_name", "engine"))
            found[f"{match[1]}{{{told}}}" if told else match[1]] = float(match[3])
    return found


def test_prompts_are_counted_whole_and_by_where_they_came_from(fresh):
    prompt = "Once upon a time there was a small fox who lived in a wood. " * 4
    answers = [fresh.complete(prompt, max_tokens=4, ignore_eos=True) for _ in range(2)]
    length = answers[0]["usage"]["prompt_tokens"]
    found = answers[1]["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert 0 < found < length
    told = series(fresh)
    assert told["vllm:prompt_tokens_total"] == 2 * length
    assert told["vllm:prompt_tokens_cached_total"] == found == told["vllm:prompt_tokens_by_source_total{source=local_cache_hit}"]
    assert told["vllm:prompt_tokens_by_source_total{source=local_compute}"] == 2 * length - found
    assert told["vllm:request_prefill_kv_computed_tokens_sum"] == 2 * length - found


def test_what_requests_asked_for_and_took_is_counted_once_each(fresh):
    fresh.complete("Once", max_tokens=5, ignore_eos=True)
    fresh.complete("Once", max_tokens=9, n=3, ignore_eos=True)
    told = series(fresh)
    assert (told["vllm:request_params_n_count"], told["vllm:request_params_n_sum"]) == (2, 4)
    assert (told["vllm:request_params_max_tokens_count"], told["vllm:request_params_max_tokens_sum"]) == (4, 5 + 3 * 9)
    assert (told["vllm:request_max_num_generation_tokens_count"], told["vllm:request_max_num_generation_tokens_sum"]) == (2, 5 + 9)
    assert told["vllm:request_num_preemptions_count"] == told["vllm:request_inference_time_seconds_count"] == 4
    assert told["vllm:request_time_per_output_token_seconds_count"] == 4
    per_token, whole = (told[f"vllm:request_{name}_seconds_sum"] for name in ("time_per_output_token", "inference_time"))
    assert 0 < per_token < whole
    assert told["vllm:num_requests_waiting_by_reason{reason=capacity}"] == told["vllm:num_requests_waiting_by_reason{reason=deferred}"] == 0
    assert told["vllm:engine_sleep_state{sleep_state=awake}"] == 1


def test_requests_are_counted_by_path_and_probes_are_left_out(fresh):
    before = series(fresh)
    for _ in range(3):
        assert fresh.get("/health").status == fresh.get("/metrics").status == fresh.get("/ping").status == 200
    fresh.complete("Once", max_tokens=1)
    with fresh.stream("Once", max_tokens=2) as events:
        list(events)
    assert fresh.post_to("/v1/completions", {"temperature": 9}).status == 400
    assert fresh.get("/v1/models").status == fresh.get("/v1/models/stories").status == 200
    assert fresh.get("/nowhere/at/all").status == 404
    told = series(fresh)
    assert not any("/health" in name or "/metrics" in name or "/ping" in name for name in told)

    def count(method, handler, status):
        return told.get(f"http_requests_total{{handler={handler},method={method},status={status}}}", 0)

    assert count("POST", "/v1/completions", "2xx") == 2 and count("POST", "/v1/completions", "4xx") == 1
    assert count("GET", "/v1/models", "2xx") == count("GET", "/v1/models/{model}", "2xx") == count("GET", "none", "4xx") == 1
    assert told["http_request_duration_seconds_count{handler=/v1/completions,method=POST}"] == 3
    assert told["quire:http_responses_total{status=2xx}"] - before["quire:http_responses_total{status=2xx}"] == 4
    assert told["quire:http_responses_total{status=4xx}"] - before["quire:http_responses_total{status=4xx}"] == 2


def test_the_process_metrics_lack_the_models_labels(fresh):
    text = fresh.get("/metrics").text
    for name in ("virtual_memory_bytes", "resident_memory_bytes", "start_time_seconds", "open_fds", "max_fds", "cpu_seconds_total"):
        assert re.search(rf"^process_{name} [0-9.e+]+$", text, re.M), name
    told = series(fresh)
    assert 0 < told["process_open_fds"] < told["process_max_fds"]


def test_latencies_of_milliseconds_have_buckets(fresh):
    fresh.complete("Once", max_tokens=2)
    told = series(fresh)
    assert told["vllm:e2e_request_latency_seconds_bucket{le=0.001}"] <= told["vllm:e2e_request_latency_seconds_bucket{le=0.3}"]
    assert {"0.001", "0.01", "0.1", "0.3", "7680.0"} <= {re.search(r"le=([^}]*)", name)[1] for name in told
                                                      if name.startswith("vllm:request_queue_time_seconds_bucket")}
