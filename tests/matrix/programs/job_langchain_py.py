"""LangChain for Python: an agent with a tool, typed answers, streams; over three APIs."""

from heard import ASK, City, POPULATION, api, check, model, tell, url
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from typed import Person


@tool
def population(city: City) -> str:
    """How many people live in a city."""
    return str(POPULATION[city])


brief = {"model": model, "temperature": 0, "max_retries": 0, "timeout": 120}
MODELS = {
    "Chat Completions": ChatOpenAI(base_url=api, api_key="none", max_tokens=100, use_responses_api=False, **brief),
    "Responses": ChatOpenAI(base_url=api, api_key="none", max_tokens=100, use_responses_api=True, **brief),
    "Messages": ChatAnthropic(base_url=url, api_key="none", max_tokens=100, **brief),
}
for path, one in MODELS.items():
    chunks = list(one.stream(ASK))
    check(f"{path}: a stream", len(chunks) > 1 and sum(chunks[1:], chunks[0]).text)
    asked = [HumanMessage(ASK)]
    called = one.bind_tools([population], tool_choice="any", parallel_tool_calls=False).invoke(asked)
    (call,) = called.tool_calls
    check(f"{path}: a forced call", call["args"]["city"] in POPULATION)
    answer = one.bind_tools([population]).invoke([*asked, called, ToolMessage(population.invoke(call["args"]), tool_call_id=call["id"])])
    check(f"{path}: an answer behind it", answer.text)
    for method in ("function_calling",) if path == "Messages" else ("json_schema", "function_calling"):
        person = one.with_structured_output(Person, method=method).invoke("Invent a person.")
        check(f"{path}: a typed answer by {method}", isinstance(person, Person))
    done = create_agent(one, tools=[population], system_prompt="Answer shortly.").invoke({"messages": asked})
    check(f"{path}: an agent's turn", done["messages"][-1].text)
tell()
