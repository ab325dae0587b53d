"""pydantic-ai: agents with typed answers, over three APIs."""

import asyncio

from heard import ASK, City, POPULATION, SHORT, api, check, model, tell, url
from pydantic_ai import Agent, NativeOutput, ToolOutput
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from typed import Person


openai = OpenAIProvider(base_url=api, api_key="none")
MODELS = {"Chat Completions": OpenAIChatModel(model, provider=openai), "Responses": OpenAIResponsesModel(model, provider=openai),
          "Messages": AnthropicModel(model, provider=AnthropicProvider(base_url=url, api_key="none"))}


async def main():
    for path, one in MODELS.items():
        brief = {"max_tokens": 150, "temperature": 0.0}
        done = await Agent(one, output_type=ToolOutput(Person), model_settings=brief).run("Invent a person.")
        check(f"{path}: a typed answer by a call", isinstance(done.output, Person))
        if path != "Messages":
            done = await Agent(one, output_type=NativeOutput(Person), model_settings=brief).run("Invent a person.")
            check(f"{path}: a typed answer by a schema", isinstance(done.output, Person))
        agent = Agent(one, model_settings={**brief, "max_tokens": SHORT})

        @agent.tool_plain
        def population(city: City) -> int:
            """How many people live in a city."""
            return POPULATION[city]

        async with agent.run_stream(ASK) as stream:
            pieces = [piece async for piece in stream.stream_text(delta=True, debounce_by=None)]
        check(f"{path}: a stream with a tool beside", len(pieces) > 3)


asyncio.run(main())
tell()
