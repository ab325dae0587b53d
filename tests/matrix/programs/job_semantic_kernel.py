"""Semantic Kernel: a plugin's function called and answered, a typed answer, a stream."""

import asyncio
from typing import Annotated

from heard import ASK, POPULATION, SHORT, api, check, model, tell
from openai import AsyncOpenAI
from semantic_kernel import Kernel
from semantic_kernel.connectors.ai.function_choice_behavior import FunctionChoiceBehavior
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion, OpenAIChatPromptExecutionSettings
from semantic_kernel.contents import ChatHistory, FunctionResultContent
from semantic_kernel.functions import kernel_function
from typed import Person


class Register:
    @kernel_function(description="How many people live in a city")
    def population(self, city: Annotated[str, "the city"]) -> str:
        return str(POPULATION.get(city, 0))


async def main():
    kernel = Kernel()
    chat = OpenAIChatCompletion(ai_model_id=model, async_client=AsyncOpenAI(base_url=api, api_key="none", max_retries=0, timeout=120))
    kernel.add_service(chat)
    kernel.add_plugin(Register(), "register")
    talk = ChatHistory()
    talk.add_user_message(ASK)
    brief = OpenAIChatPromptExecutionSettings(max_tokens=SHORT, temperature=0)
    pieces = [str(piece) async for piece in chat.get_streaming_chat_message_content(talk, brief)]
    check("a chat in a stream", len(pieces) > 3 and "".join(pieces))
    forced = FunctionChoiceBehavior.Required(auto_invoke=True, maximum_auto_invoke_attempts=1)
    calling = OpenAIChatPromptExecutionSettings(max_tokens=300, temperature=0, function_choice_behavior=forced, parallel_tool_calls=False)
    await chat.get_chat_message_content(talk, calling, kernel=kernel)
    results = [item for message in talk.messages for item in message.items if isinstance(item, FunctionResultContent)]
    check("a plugin's function called and run", results)
    check("an answer behind it", str(await chat.get_chat_message_content(talk, brief)))
    asked = ChatHistory()
    asked.add_user_message("Invent a person.")
    typed = await chat.get_chat_message_content(asked, OpenAIChatPromptExecutionSettings(max_tokens=120, temperature=0, response_format=Person))
    check("a typed answer", Person.model_validate_json(str(typed)))


asyncio.run(main())
tell()
