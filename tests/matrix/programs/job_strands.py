"""Strands: an agent's streamed turn with tools, and a structured answer."""

import asyncio

from heard import ASK, City, POPULATION, api, check, model, tell
from strands import Agent, tool
from strands.models.openai import OpenAIModel
from typed import Person


@tool
def population(city: City) -> str:
    """How many people live in a city."""
    return str(POPULATION[city])


# An answer that is cut is an error to it: these end with their first sentence.
one = OpenAIModel(client_args={"base_url": api, "api_key": "none", "max_retries": 0}, model_id=model,
                  params={"temperature": 0, "max_tokens": 1000, "stop": ["."]})
agent = Agent(model=one, tools=[population], system_prompt="Answer shortly.", callback_handler=None)


async def main():
    pieces = [event["data"] async for event in agent.stream_async(ASK) if "data" in event]
    check("an agent's turn in a stream, tools beside", len(pieces) > 3)
    done = await Agent(model=one, callback_handler=None).invoke_async("Invent a person.", structured_output_model=Person)
    check("a structured answer", isinstance(done.structured_output, Person))


asyncio.run(main())
check("a tool called by hand, and a turn behind it", agent.tool.population(city="Paris")["status"] == "success" and str(agent("And now?")))
tell()
