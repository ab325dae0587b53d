"""openai-agents: an agent with a tool, and one with a typed answer."""

import asyncio

from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, RunConfig, Runner, function_tool
from heard import ASK, City, Color, POPULATION, api, check, model, tell
from openai import AsyncOpenAI
from pydantic import BaseModel, ConfigDict, Field


class Person(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str = Field(max_length=20)
    age: int = Field(ge=0, le=130)
    color: Color


asked = []


@function_tool
def population(city: City) -> int:
    """How many people live in a city."""
    asked.append(city)
    return POPULATION[city]


async def main():
    client = AsyncOpenAI(base_url=api, api_key="none", max_retries=0, timeout=120)
    quiet = RunConfig(tracing_disabled=True)
    for kind, path in ((OpenAIResponsesModel, "Responses"), (OpenAIChatCompletionsModel, "Chat Completions")):
        asked.clear()
        one = kind(model=model, openai_client=client)
        clerk = Agent(name="clerk", instructions="Answer shortly.", tools=[population], model=one,
                      model_settings=ModelSettings(tool_choice="required", parallel_tool_calls=False, temperature=0))
        done = await Runner.run(clerk, ASK, run_config=quiet)
        check(f"{path}: the tool called, run and answered", asked and done.final_output and len(done.raw_responses) == 2)
        talker = Agent(name="talker", model=one, model_settings=ModelSettings(temperature=0))  # a cut answer is an error to it
        stream = Runner.run_streamed(talker, ASK, run_config=quiet)
        events = [event.type async for event in stream.stream_events()]
        check(f"{path}: a run in a stream", stream.final_output and events.count("raw_response_event") > 3)
        namer = Agent(name="namer", output_type=Person, model=one, model_settings=ModelSettings(max_tokens=120))
        done = await Runner.run(namer, "Invent a person.", run_config=quiet)
        check(f"{path}: a typed answer", isinstance(done.final_output, Person))


asyncio.run(main())
tell()
