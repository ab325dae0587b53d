"""Inspect: two tasks with their scorers, read back from its logs."""

import os

from heard import City, POPULATION, api, check, model, question, tell

os.environ |= {"QUIRE_BASE_URL": api, "QUIRE_API_KEY": "none", "INSPECT_LOG_DIR": f"{question['home']}/logs"}

from inspect_ai import Task, eval as evaluate  # noqa: E402: it reads the environment as it is imported
from inspect_ai.dataset import Sample  # noqa: E402
from inspect_ai.model import GenerateConfig  # noqa: E402
from inspect_ai.scorer import choice, includes  # noqa: E402
from inspect_ai.solver import generate, multiple_choice, use_tools  # noqa: E402
from inspect_ai.tool import ToolFunction, tool  # noqa: E402

where = f"openai-api/quire/{model}"
towns = {"France": "Paris", "Italy": "Rome", "Spain": "Madrid"}
capitals = [Sample(input=f"What is the capital of {land}?", target=town) for land, town in towns.items()]
plain = Task(dataset=capitals, solver=generate(), scorer=includes())
(log,) = evaluate(plain, model=where, temperature=0, max_tokens=40, display="none")
score = log.results.scores[0].metrics["accuracy"].value if log.results else None
check(f"an evaluation of three questions, {score} right", log.status == "success" and len(log.samples) == 3 and score is not None)


@tool
def population():
    async def execute(city: City):
        """How many people live in a city.

        Args:
            city: The city.
        """
        return POPULATION[city]

    return execute


forced = use_tools([population()], tool_choice=ToolFunction("population"))
(log,) = evaluate(Task(dataset=[Sample(input="How many people live in Oslo?", target="724000")], solver=[forced, generate(tool_calls="single")],
                       scorer=includes(), config=GenerateConfig(max_tokens=120)), model=where, temperature=0, display="none")
messages = log.samples[0].messages
check("a sample whose tool was called and run", log.status == "success" and any(message.role == "tool" for message in messages))
picks = [Sample(input="Which of these is a color?", choices=["bread", "green", "seven"], target="B")]
(log,) = evaluate(Task(dataset=picks, solver=multiple_choice(), scorer=choice()), model=where, temperature=0, max_tokens=60, display="none")
check("a question of several choices", log.status == "success")
tell()
