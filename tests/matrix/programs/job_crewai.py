"""CrewAI: a crew of one agent with a tool and one task, and a typed answer of its model."""

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool
from heard import City, POPULATION, api, check, model, tell
from typed import Person


@tool("population")
def population(city: City) -> str:
    """How many people live in a city."""
    return str(POPULATION[city])


one = LLM(model=f"openai/{model}", base_url=api, api_key="none", temperature=0, max_tokens=60)
check("a model's answer", one.call("What is the capital of France?"))
typed = LLM(model=f"openai/{model}", base_url=api, api_key="none", temperature=0, max_tokens=120, response_format=Person).call("Invent a person.")
check("a typed answer", isinstance(typed, Person) or Person.model_validate_json(typed))
clerk = Agent(role="clerk", goal="Answer questions about cities", backstory="A clerk of a town hall.", llm=one, tools=[population], max_iter=2,
              verbose=False, allow_delegation=False)
task = Task(description="How many people live in Paris?", expected_output="A number.", agent=clerk)
check("a crew's task", str(Crew(agents=[clerk], tasks=[task], verbose=False).kickoff()))
tell()
