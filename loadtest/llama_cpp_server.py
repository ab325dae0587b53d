"""llama.cpp's own HTTP server, from the wheel `xllamacpp`: python loadtest/llama_cpp_server.py FILE.gguf --port 8001"""

import argparse
import signal

import xllamacpp


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--slots", type=int, default=32)
    parser.add_argument("--slot-tokens", type=int, default=256)
    parser.add_argument("--prompt-cache", action="store_true")
    args = parser.parse_args()

    params = xllamacpp.CommonParams()
    params.model.path = args.model
    params.hostnames = ["127.0.0.1"]
    params.port = args.port
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = args.threads
    params.n_parallel = args.slots
    params.n_ctx = args.slots * args.slot_tokens
    params.n_batch = params.n_ubatch = 512
    params.cont_batching = True
    params.cache_prompt = args.prompt_cache
    params.warmup = True
    server = xllamacpp.Server(params)
    print("listening on", server.listening_address, flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
