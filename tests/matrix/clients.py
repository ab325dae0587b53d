"""The client programs of the matrix: what each is, the packages that make it, and what it is asked to do."""

import dataclasses
import pathlib

PLACE = pathlib.Path(__file__).resolve().parents[2] / "build" / "matrix"
RESULTS = PLACE / "results"
WORKED, FAILED, NOT_RUN = "worked", "failed", "not run"
# Servers of the matrix (served.py): `chat` is SmolLM2-135M-Instruct, `long` the embedded model with room for an agent's prompt.
CHAT, LONG = "chat", "long"
ALONE, BESIDE = "python", "node"  # a venv of PyPI's packages; a folder of npm's


@dataclasses.dataclass(frozen=True)
class Client:
    name: str  # of its environment below build/matrix and of its program below programs/
    title: str
    kind: str
    packages: dict  # package → pinned version; the first ones say which version the table shows
    job: str
    server: str = CHAT
    shown: int = 1  # so many of the packages are named in the table
    limit_s: int = 300
    refused: tuple = ()  # requests that the client sends to learn what there is, and goes on from: "METHOD path status"
    program: str = ""  # its file below programs/; without one job_NAME.py or job_NAME.mjs

    @property
    def version(self):
        shown = list(self.packages.items())[: self.shown]
        return shown[0][1] if self.shown == 1 else ", ".join(f"{package} {version}" for package, version in shown)

    @property
    def file(self):
        return self.program or f"job_{self.name}{'.mjs' if self.kind == BESIDE else '.py'}"


def python(name, title, packages, job, **more):
    return Client(name, title, ALONE, packages, job, **more)


def node(name, title, packages, job, **more):
    return Client(name, title, BESIDE, packages, job, **more)


def agent(name, title, packages, job, **more):
    """A coding agent of npm: a Python program sets its home up, runs it and reads what it printed."""
    return Client(name, title, BESIDE, packages, job, **{"server": LONG, "program": f"job_{name}.py", **more})


NODE = {"node": "22.23.3"}  # for programs that want another than the machine may have

CLIENTS = (
    # ---- coding agents
    agent("claude_code", "Claude Code", {"@anthropic-ai/claude-code": "2.1.332"},
          "a session of two turns, all of its tools offered, over Messages"),
    agent("codex", "Codex CLI", {"@openai/codex": "0.171.0"},
          "a session of two turns, all of its tools offered, and an answer with a JSON schema, over Responses"),
    agent("opencode", "opencode", {"opencode-ai": "1.18.33"},
          "sessions of two turns, all of its tools offered, over Chat Completions, Responses and Messages"),
    agent("qwen_code", "Qwen Code", {"@qwen-code/qwen-code": "0.24.4", **NODE}, "a session of two turns, all of its tools offered"),
    agent("cline", "Cline", {"cline": "3.0.65"}, "a session of one turn, all of its tools offered"),
    agent("continue_cn", "Continue (`cn`)", {"@continuedev/cli": "1.5.47"}, "a session of two turns, all of its tools offered"),
    python("aider", "aider", {"aider-chat": "0.86.2"}, "a question about a file of a git repository, its answer streamed"),
    # ---- libraries
    python("huggingface", "huggingface_hub", {"huggingface_hub": "2.4.0", "pydantic": "2.14.4"},
           "InferenceClient: a chat, streamed; a forced call; an answer with a JSON schema"),
    python("instructor", "instructor", {"instructor": "1.17.0"}, "a pydantic object by a forced call, by a JSON schema, and a list of them streamed"),
    python("openai_agents", "openai-agents", {"openai-agents": "0.24.0"},
           "an agent that calls a tool and goes on, and one with a typed answer; over Responses and Chat Completions"),
    python("pydantic_ai", "pydantic-ai", {"pydantic-ai-slim[openai,anthropic]": "2.68.0"},
           "an agent with typed answers by a tool and by a schema, streamed; over Chat Completions, Responses and Messages"),
    python("langchain_py", "LangChain (Python)", {"langchain": "1.5.2", "langchain-openai": "1.7.4", "langchain-anthropic": "1.7.10"},
           "an agent that calls a tool and goes on; typed answers; streams; over Chat Completions, Responses and Messages", shown=3),
    node("langchain_js", "LangChain (JavaScript)", {"langchain": "1.5.14", "@langchain/openai": "1.6.0", "@langchain/core": "1.4.0", "zod": "4.6.7"},
         "a bound tool called and answered; a typed answer; a stream", shown=2),
    python("litellm", "LiteLLM (SDK)", {"litellm": "1.110.2"},
           "a chat, streamed; a forced call; a typed answer; over Chat Completions, Responses and Messages"),
    python("litellm_proxy", "LiteLLM (proxy)", {"litellm[proxy]": "1.106.2"},
           "a gateway in front of the server, reached over Chat Completions, Responses and Messages", limit_s=600),
    python("llamaindex", "LlamaIndex", {"llama-index-core": "0.14.25", "llama-index-llms-openai-like": "0.8.1",
                                          "llama-index-embeddings-openai-like": "0.4.0"},
           "a chat, streamed; a forced call run by it; a structured answer; answers about a text, whole and found by its embeddings", shown=2),
    node("ai_sdk", "AI SDK", {"ai": "7.0.173", "@ai-sdk/openai": "4.0.118", "@ai-sdk/openai-compatible": "3.0.92", "@ai-sdk/anthropic": "4.0.105",
                              "zod": "4.6.7"},
         "streamed text; an object of a zod schema; a tool called, run and answered; with each of its three providers", shown=4),
    python("outlines", "Outlines", {"outlines": "1.3.3", "openai": "3.57.0"}, "answers constrained to a choice, a pattern, a JSON schema and a grammar"),
    python("guidance", "guidance", {"guidance": "0.3.1", "openai": "3.57.0"}, "a conversation with a constrained JSON answer and a free one"),
    python("semantic_kernel", "Semantic Kernel", {"semantic-kernel": "1.45.0"}, "a plugin's function called and answered; a typed answer; a stream"),
    python("strands", "Strands", {"strands-agents[openai]": "1.62.0"}, "an agent's streamed turn with tools, and a structured answer"),
    python("crewai", "CrewAI", {"crewai": "1.15.30"}, "a crew of one agent and one task, and a typed answer", limit_s=600),
    # ---- evaluations and load
    python("inspect", "Inspect", {"inspect-ai": "0.3.285", "openai": "3.57.0"},
           "an evaluation of three questions with its scorer, one with a tool, and one of several choices"),
    python("lm_eval", "lm-eval", {"lm-eval[api]": "0.4.13", "transformers": "5.24.0"},
           "a multiple-choice task by log-likelihoods and a generated one, both of its own files", limit_s=600),
    python("guidellm", "guidellm", {"guidellm": "0.8.1"}, "a benchmark of eight requests, two at once, with its report", limit_s=600),
)
