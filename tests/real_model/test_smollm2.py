"""A real instruct model, from its template to the end of its answers: SmolLM2-135M-Instruct, served, against transformers.

Both read the same bf16 weights, and compute and keep K and V in f32.

Tolerance: the rounding errors of N products and sums on the longest path to a logit add up to about sqrt(N)·u of the largest
logit, u = 2^-24. Here N is 30 layers of some 5,000, and logits are below 40: 2^-24 · sqrt(150,000) · 40 = 9.2e-4. This is the
error to be expected, without the factors that make test_against_transformers.py's a bound: with those a quarter of a logit
would count as a tie. Differences seen are below 1e-4.
"""
import concurrent.futures
import http.client
import importlib.util
import json
import pathlib
import threading

import jsonschema
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the reference needs torch")
transformers = pytest.importorskip("transformers", reason="the reference needs transformers")

import smollm2  # noqa: E402

pytestmark = pytest.mark.full
torch.set_num_threads(1)  # two that wait for each other take three times as long on a busy machine

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOLERANCE = 1e-3  # of a logit, and of a log probability; two of them apart is a near tie
MOST = 48  # tokens of an answer
END = "<|im_end|>"


def asked(*turns, system=None):
    """A conversation whose turns are the user's and the assistant's by turns."""
    roles = ("user", "assistant")
    begin = [{"role": "system", "content": system}] if system else []
    return begin + [{"role": roles[i % 2], "content": text} for i, text in enumerate(turns)]


CONVERSATIONS = {
    "english-capital": asked("What is the capital of France?"),
    "english-hello": asked("Hello!"),
    "english-sum": asked("What is 2 + 3? Answer with the number only."),
    "english-yes": asked("Is water wet? Say yes or no."),
    "english-gravity": asked("Tell me about gravity."),
    "english-story": asked("Write the first two sentences of a story about an old lighthouse, a storm and a letter that came too late."),
    "english-code": asked("Write a Python function that returns the sum of the even numbers of a list:\n\ndef sum_even(numbers):"),
    "english-long": asked(
        "Here is a note from our caretaker. \"The heating in the north wing will be off from Monday 14 November 2022, 8:30, until "
        "Wednesday at noon, because the old boiler (built in 1987) is replaced. Hot water is not affected. Please close all windows, "
        "and call 0123 456789 if you smell gas.\" When will the heating be off, and why?"),
    "english-system": asked("Who are you?", system="You are Captain Ahab. Answer in one short sentence."),
    "english-turns": asked("My name is Ada.", "Nice to meet you, Ada! How can I help you today?", "What is my name?"),
    "english-many-turns": asked("Name a fruit.", "Apple.", "Another one.", "Pear.", "Another one.", "Plum.", "How many did you name?",
                                system="You are a terse assistant."),
    "english-marks": asked("Repeat this: \"naïve café — 50 % off!\" 🙂"),
    "german-capital": asked("Was ist die Hauptstadt von Deutschland?"),
    "german-hello": asked("Guten Tag! Wie geht es Ihnen?"),
    "german-sky": asked("Warum ist der Himmel blau? Erkläre es einem Kind in zwei Sätzen."),
    "german-system": asked("Nenne drei Flüsse.", system="Du bist ein freundlicher Assistent und antwortest immer auf Deutsch."),
    "german-turns": asked("Ich heiße Jürgen und wohne in Köln.", "Schön, dich kennenzulernen, Jürgen!", "Wo wohne ich?"),
    "german-long": asked("Übersetze ins Englische: »Die Größe des Gebäudes überraschte uns; später fanden wir heraus, dass es 1893 "
                         "für eine Ausstellung errichtet worden war, die nie stattfand.«"),
    "french-capital": asked("Quelle est la capitale de l'Italie ?"),
    "french-hello": asked("Bonjour, ça va ?"),
    "french-recipe": asked("Donne-moi une recette très simple avec des œufs, du beurre et du pain."),
    "french-system": asked("Pourquoi la mer est-elle salée ?", system="Tu réponds toujours en français, en une seule phrase."),
    "french-turns": asked("J'ai deux chats et un chien.", "Quels beaux animaux !", "Combien d'animaux est-ce que j'ai ?"),
    "french-long": asked("Traduis en anglais : « Après avoir traversé la forêt, nous arrivâmes à une auberge où l'hôtesse, déjà âgée, nous "
                         "servit une soupe à l'oignon et nous raconta l'histoire du village. »"),
    "spanish-capital": asked("¿Cuál es la capital de España?"),
    "spanish-hello": asked("¡Hola! ¿Qué tal?"),
    "spanish-poem": asked("Escribe un poema corto sobre el otoño y los niños que juegan en la calle."),
    "spanish-system": asked("¿Qué es un volcán?", system="Eres un profesor de geografía. Responde en español."),
    "spanish-turns": asked("Mi color favorito es el azul.", "¡Qué bonito color!", "¿Cuál es mi color favorito?"),
    "spanish-long": asked("Resume en una frase: «El señor Núñez llegó a la estación a las 7:45, pero el tren había salido diez minutos antes; "
                          "así que volvió andando a casa, bajo la lluvia, y no se lo contó a nadie.»"),
}  # fmt: skip
NAMES = list(CONVERSATIONS)

TEXTS = ["Hello, world!", " two  spaces\n\n\tand a tab ", "1234567890 3.14 ½ x² Ⅻ", "Größe, Straße, Übermut", "¿Qué? ¡Mañana, señor!",
         "Où est l'œuf ? Ça coûte 5 €.", "漢字かな交じり 한국어 العربية עברית ไทย हिन्दी", "🙂👩‍👩‍👧🏳️‍🌈", "def f(x):\n    return x**2  # 'quoted'",
         "don't we'll I'M YOU'RE", "e\u0301 \u00a0\u200b\ufeff\x00\x7f", "a" * 300, "<|im_start|>user\nhi<|im_end|>\n", "<|im_start|", "\r\n\r\n"]  # fmt: skip

# What follows what is a matter of order: rotated wrongly, the model has no idea.
IN_ORDER = ("The days of the week are Monday, Tuesday, Wednesday, Thursday, Friday, Saturday and Sunday. The months are January, February, "
            "March, April, May, June, July, August, September, October, November and December.")

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 1, "maxLength": 20}, "age": {"type": "integer", "minimum": 0, "maximum": 130},
                   "languages": {"type": "array", "items": {"enum": ["English", "German", "French", "Spanish"]}, "minItems": 1, "maxItems": 3}},
    "required": ["name", "age", "languages"],
    "additionalProperties": False,
}  # fmt: skip
WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string", "minLength": 1, "maxLength": 20}, "unit": {"enum": ["celsius", "fahrenheit"]},
                   "days": {"type": "integer", "minimum": 1, "maximum": 7}},
    "required": ["city", "unit"],
    "additionalProperties": False,
}  # fmt: skip
TIME = {
    "type": "object",
    "properties": {"zone": {"type": "string", "pattern": "^[A-Z][a-z]+/[A-Z][a-z]+$", "maxLength": 30}},
    "required": ["zone"],
    "additionalProperties": False,
}
PARAMETERS = {"get_weather": WEATHER, "get_time": TIME}
TOOLS = [{"type": "function", "function": {"name": name, "description": name.replace("_", " "), "parameters": parameters}}
         for name, parameters in PARAMETERS.items()]  # fmt: skip


spec = importlib.util.spec_from_file_location("wire_conftest", ROOT / "tests" / "wire" / "conftest.py")
wire = importlib.util.module_from_spec(spec)
spec.loader.exec_module(wire)


@pytest.fixture(scope="module")
def directory():
    return smollm2.checkpoint()


def served(directory, *flags):
    return wire.Server("--model", directory, "--served-model-name", "smollm2", "--kv-cache-dtype", "f32", "--max-model-len", 2048,
                       "--kv-cache-memory", "512MiB", *flags)


@pytest.fixture(scope="module")
def server(directory):
    running = served(directory)
    yield running
    assert running.stop() == 0, running.log[-4000:]


@pytest.fixture(scope="module")
def uncached_server(directory):
    """One that keeps no prefixes, and is told a form of calls, since the model's template teaches none."""
    running = served(directory, "--prefix-caching", "off", "--tool-call-parser", "hermes")
    yield running
    assert running.stop() == 0, running.log[-4000:]


def ask(server, messages, **fields):
    """The answer and its first choice."""
    answer = server.post_to("/v1/chat/completions", {"messages": messages, "temperature": 0, "max_tokens": MOST, "return_token_ids": True, **fields})
    assert answer.status == 200, answer.text
    return answer.json, answer.json["choices"][0]


def essence(choice):
    """What must not change: text, tokens and end."""
    return choice["message"]["content"], choice["token_ids"], choice["finish_reason"]


def cached_tokens(answer):
    return answer["usage"]["prompt_tokens_details"]["cached_tokens"]


@pytest.fixture(scope="module")
def alone(server):
    """Each conversation's answer, with nobody else there."""
    return {name: ask(server, messages, logprobs=True)[1] for name, messages in CONVERSATIONS.items()}


class Reference:
    """transformers on the same checkpoint, in f32."""

    def __init__(self, directory):
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
        self.model = transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()

    def rendered(self, messages, **options):
        """The prompt's text and its tokens."""
        text = self.tokenizer.apply_chat_template(messages, tokenize=False, **options)
        return text, self.tokenizer.apply_chat_template(messages, tokenize=True, return_dict=False, **options)

    def greedy(self, prompts):
        """What generate() makes of all of them in one batch, each up to its end."""
        batch = self.tokenizer.pad({"input_ids": prompts}, padding_side="left", return_tensors="pt")
        said = self.model.generate(**batch, max_new_tokens=MOST, do_sample=False)[:, batch["input_ids"].shape[1]:].tolist()
        end = self.tokenizer.eos_token_id
        return [ids[: ids.index(end) + 1] if end in ids else ids for ids in said]

    def logits(self, prompt, answer):
        """The row [V] from which each token of the answer was chosen, given what was said before it."""
        with torch.no_grad():
            out = self.model(torch.tensor([prompt + answer]), use_cache=False, logits_to_keep=len(answer) + 1)
        return out.logits[0, :-1].numpy()

    def surprise(self, text):
        """The mean of -log p of the text's tokens, in nats."""
        ids = torch.tensor([self.tokenizer(text)["input_ids"]])
        with torch.no_grad():
            return float(self.model(ids, labels=ids).loss)


@pytest.fixture(scope="module")
def reference(directory):
    return Reference(directory)


@pytest.fixture(scope="module")
def generated(reference):
    prompts = [reference.rendered(messages, add_generation_prompt=True)[1] for messages in CONVERSATIONS.values()]
    return dict(zip(NAMES, reference.greedy(prompts), strict=True))


@pytest.fixture(scope="module")
def rows(reference, alone):
    return {name: reference.logits(choice["prompt_token_ids"], choice["token_ids"]) for name, choice in alone.items()}


# ---- the checkpoint is the model


def test_the_tokenizer_gives_every_text_back(reference):
    for text in TEXTS:
        assert reference.tokenizer.decode(reference.tokenizer(text)["input_ids"]) == text
    assert reference.tokenizer("<|im_start|>a<|im_end|>")["input_ids"][::2] == [1, 2]
    assert len(reference.tokenizer("2024")["input_ids"]) == 4  # a digit is a token


def test_the_model_knows_its_days_and_paris(reference, generated):
    surprise = reference.surprise(IN_ORDER)
    print(f"{surprise:.3f} nats a token")
    assert surprise < 2
    assert "Paris" in reference.tokenizer.decode(generated["english-capital"])


def test_rows_left_as_llama_cpp_orders_them_would_be_seen(reference):
    def halves_to_pairs(weight):
        rows, columns = weight.shape
        return weight.reshape(-1, 2, 32, columns).swapaxes(1, 2).reshape(rows, columns)  # heads of 64

    plain = reference.surprise(IN_ORDER)
    weights = [part.weight for layer in reference.model.model.layers for part in (layer.self_attn.q_proj, layer.self_attn.k_proj)]
    kept = [weight.data for weight in weights]
    try:
        for weight in weights:
            weight.data = halves_to_pairs(weight.data)
        wrong = reference.surprise(IN_ORDER)
    finally:
        for weight, data in zip(weights, kept, strict=True):
            weight.data = data
    print(f"{wrong:.3f} nats a token, not {plain:.3f}")
    assert wrong > plain + 1


# ---- prompts


def test_texts_have_the_tokens_that_transformers_gives_them(server, reference):
    for text in TEXTS:
        ids = reference.tokenizer(text)["input_ids"]
        assert server.post_to("/tokenize", {"prompt": text}).json["tokens"] == ids, text
        assert server.post_to("/detokenize", {"tokens": ids}).json["prompt"] == text


@pytest.mark.parametrize("name", NAMES)
def test_a_prompt_is_rendered_as_transformers_renders_it(server, reference, name):
    for fields in ({}, {"add_generation_prompt": False}, {"add_generation_prompt": False, "continue_final_message": True}):
        text, ids = reference.rendered(CONVERSATIONS[name], **{"add_generation_prompt": True, **fields})
        told = server.post_to("/v1/chat/completions/render", {"messages": CONVERSATIONS[name], **fields}).json
        assert (told["prompt"], told["token_ids"]) == (text, ids), fields


# ---- answers


@pytest.mark.parametrize("name", NAMES)
def test_greedy_tokens_are_those_of_transformers(alone, generated, reference, rows, name):
    choice = alone[name]
    ours, theirs = choice["token_ids"], generated[name]
    assert choice["prompt_token_ids"] == reference.rendered(CONVERSATIONS[name], add_generation_prompt=True)[1]
    for step, (token, row) in enumerate(zip(ours, rows[name], strict=True)):
        gap = float(row.max() - row[token])
        if gap > 0:
            print(f"{name}, token {step}: {token} for {row.argmax()}, {gap:.3g} apart in transformers")
        assert gap <= 2 * TOLERANCE, f"token {step} is {token}, transformers' is {row.argmax()}, {gap:.3g} above it"
    if ours != theirs:  # behind a near tie generate() goes on from its own token, the rows above from ours
        step = next((i for i, (token, other) in enumerate(zip(ours, theirs)) if token != other), None)
        assert step is not None, f"one answer is the beginning of the other: {ours}, {theirs}"
        gap = abs(float(rows[name][step][ours[step]] - rows[name][step][theirs[step]]))
        print(f"{name}, token {step}: {ours[step]} for generate()'s {theirs[step]}, {gap:.3g} apart in transformers")
        assert gap <= 2 * TOLERANCE, f"token {step} is {ours[step]}, generate()'s is {theirs[step]}, {gap:.3g} from it"


@pytest.mark.parametrize("name", NAMES)
def test_log_probabilities_are_those_of_transformers(alone, rows, name):
    told = np.array([token["logprob"] for token in alone[name]["logprobs"]["content"]])
    scores = torch.log_softmax(torch.tensor(rows[name], dtype=torch.float64), dim=-1).numpy()
    difference = np.abs(told - scores[np.arange(len(told)), alone[name]["token_ids"]])
    print(f"{difference.max():.3g} off at most")
    assert difference.max() <= TOLERANCE


def test_answers_end_where_the_model_ends_them(alone, reference):
    end = reference.tokenizer.convert_tokens_to_ids(END)
    for name, choice in alone.items():
        ids = choice["token_ids"]
        if choice["finish_reason"] == "stop":
            assert ids.index(end) == len(ids) - 1, name
        else:
            assert choice["finish_reason"] == "length" and len(ids) == MOST and end not in ids, name
    ended = [name for name, choice in alone.items() if choice["finish_reason"] == "stop"]
    print(f"{len(ended)} ended by {END}: {ended}")
    assert len(ended) >= 8


def test_the_text_is_that_of_the_tokens_without_special_ones(alone, reference):
    for name, choice in alone.items():
        text = choice["message"]["content"]
        assert text == reference.tokenizer.decode(choice["token_ids"], skip_special_tokens=True).rstrip("\ufffd"), name
        assert not any(special in text for special in reference.tokenizer.all_special_tokens) and "<|" not in text, name


def test_asked_again_from_the_cache_or_without_one_each_answer_is_the_same(server, uncached_server, alone):
    for name, messages in CONVERSATIONS.items():
        for where, is_cached in ((server, True), (uncached_server, False)):
            answer, choice = ask(where, messages)
            assert (cached_tokens(answer) > 0) == is_cached, name
            assert essence(choice) == essence(alone[name]), name


def test_thirty_at_once_are_answered_as_each_alone(server, uncached_server, alone):
    for where in (server, uncached_server):
        begin = threading.Barrier(len(NAMES))

        def one(name, where=where, begin=begin):
            begin.wait()
            return ask(where, CONVERSATIONS[name])[1]

        with concurrent.futures.ThreadPoolExecutor(len(NAMES)) as pool:
            together = dict(zip(NAMES, pool.map(one, NAMES), strict=True))
        for name in NAMES:
            assert essence(together[name]) == essence(alone[name]), name


def test_a_completion_of_the_same_tokens_has_the_same_text(server, alone):
    prompts = [choice["prompt_token_ids"] for choice in alone.values()]
    answer = server.complete(prompts, temperature=0, max_tokens=MOST, return_token_ids=True)
    for name, choice in zip(NAMES, answer["choices"], strict=True):
        assert choice["prompt_token_ids"] == alone[name]["prompt_token_ids"]
        assert (choice["text"], choice["token_ids"], choice["finish_reason"]) == essence(alone[name]), name


def streamed(server, messages):
    """The essence of a streamed answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=wire.PATIENCE_S)
    body = {"messages": messages, "temperature": 0, "max_tokens": MOST, "return_token_ids": True, "stream": True}
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
    *events, done = wire.events_of(connection.getresponse())
    connection.close()
    assert done == "[DONE]"
    pieces = [piece for event in events for piece in json.loads(event)["choices"]]
    (finish,) = [piece["finish_reason"] for piece in pieces if piece["finish_reason"]]
    text = "".join(piece["delta"].get("content") or "" for piece in pieces)
    return text, [token for piece in pieces for token in piece.get("token_ids") or []], finish


def test_streams_add_up_to_the_whole_answers(server, alone):
    for name, messages in CONVERSATIONS.items():
        assert streamed(server, messages) == essence(alone[name]), name


def test_a_seed_decides_what_is_sampled(server, uncached_server):
    said = set()
    for seed in (7, 8):
        for name in ("english-story", "german-sky", "french-recipe", "spanish-poem"):
            fields = {"temperature": 0.9, "top_p": 0.95, "seed": seed}
            first, second, uncached = [ask(where, CONVERSATIONS[name], **fields)[1] for where in (server, server, uncached_server)]
            assert essence(first) == essence(second) == essence(uncached), (name, seed)
            said.add(first["message"]["content"])
    assert len(said) == 8


# ---- forms


@pytest.mark.parametrize("question", ["Invent a person and answer in JSON.", "Erfinde eine Person und antworte in JSON.",
                                      "Invente une personne et réponds en JSON.", "Inventa una persona y responde en JSON."])
def test_an_answer_is_valid_for_its_schema(server, question):
    form = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON, "strict": True}}
    for fields in ({}, {"temperature": 1.0, "seed": 3}):
        _, choice = ask(server, asked(question), response_format=form, max_tokens=300, **fields)
        assert choice["finish_reason"] == "stop", choice
        jsonschema.validate(json.loads(choice["message"]["content"]), PERSON)


@pytest.mark.parametrize("choice", ["auto", "required", {"type": "function", "function": {"name": "get_weather"}}], ids=str)
def test_tools_are_taught_where_the_template_teaches_no_calls(server, choice):
    _, answer = ask(server, asked("What is the weather in Paris?"), tools=TOOLS, tool_choice=choice, max_tokens=200)
    message = answer["message"]
    assert "<tool_call>" not in (message["content"] or "")
    if choice != "auto":
        assert not message["content"] and message["tool_calls"]
        assert answer["finish_reason"] == "length" or all(json.loads(call["function"]["arguments"]) for call in message["tool_calls"])


@pytest.mark.parametrize("choice", ["required", *({"type": "function", "function": {"name": name}} for name in PARAMETERS)], ids=str)
@pytest.mark.parametrize("question", ["What is the weather in Paris?", "Wie spät ist es in Berlin?", "Hello!"])
def test_a_forced_call_has_valid_arguments(uncached_server, question, choice):
    for fields in ({}, {"temperature": 1.0, "seed": 3}):
        _, said = ask(uncached_server, asked(question), tools=TOOLS, tool_choice=choice, parallel_tool_calls=False, max_tokens=300, **fields)
        (call,) = said["message"]["tool_calls"]
        assert said["finish_reason"] == "tool_calls" and not said["message"]["content"]
        name = call["function"]["name"]
        assert choice == "required" or name == choice["function"]["name"]
        jsonschema.validate(json.loads(call["function"]["arguments"]), PARAMETERS[name])


def test_tools_that_are_only_offered_leave_the_answer_as_it_is(uncached_server, alone):
    _, choice = ask(uncached_server, CONVERSATIONS["english-capital"], tools=TOOLS)
    assert not choice["message"].get("tool_calls") and essence(choice) == essence(alone["english-capital"])
