"""LlamaIndex: a chat, a call that it runs, a structured answer, and answers about a text."""

from heard import ASK, City, POPULATION, SHORT, api, check, model, tell
from llama_index.core import Document, SummaryIndex, VectorStoreIndex
from llama_index.core.llms import ChatMessage
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.tools import FunctionTool
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.llms.openai_like import OpenAILike
from typed import Person


def population(city: City) -> int:
    """How many people live in a city."""
    return POPULATION[city]


how = {"model": model, "api_base": api, "api_key": "none", "is_chat_model": True, "context_window": 8192, "temperature": 0, "max_retries": 0}
one = OpenAILike(**how, is_function_calling_model=True, max_tokens=SHORT * 3)
whole = one.chat([ChatMessage(role="user", content=ASK)]).message.content
pieces = [piece.delta for piece in one.stream_chat([ChatMessage(role="user", content=ASK)])]
check("a chat, streamed as it is whole", whole and "".join(pieces) == whole)
done = one.predict_and_call([FunctionTool.from_defaults(population)], user_msg=ASK, tool_required=True)
check("a call that it ran", int(done.response) in POPULATION.values())
typed = OpenAILike(**how, is_function_calling_model=True, should_use_structured_outputs=True, max_tokens=120)
check("a structured answer by a schema", isinstance(typed.as_structured_llm(Person).complete("Invent a person.").raw, Person))
check("a structured answer by a call", isinstance(one.as_structured_llm(Person).complete("Invent a person.").raw, Person))
text = Document(text=" ".join(f"In the year {1900 + year} the town had {1000 + 13 * year} people." for year in range(60)))
index = SummaryIndex.from_documents([text], transformations=[SentenceSplitter(chunk_size=256, chunk_overlap=0)])
answer = index.as_query_engine(llm=one, response_mode="compact").query("How many people had the town in 1950?")
check("an answer about a text in parts", str(answer))
embedder = OpenAILikeEmbedding(model_name=model, api_base=api, api_key="none", max_retries=0)
found = VectorStoreIndex.from_documents([text], transformations=[SentenceSplitter(chunk_size=128, chunk_overlap=0)], embed_model=embedder)
answer = found.as_query_engine(llm=one, similarity_top_k=2).query("How many people had the town in 1950?")
check("an answer about parts that embeddings found", str(answer) and len(answer.source_nodes) == 2)
completed = OpenAILike(**{**how, "is_chat_model": False}, max_tokens=SHORT)
check("completions", completed.complete("Once upon a time").text and len(list(completed.stream_complete("Once upon a time"))) > 3)
tell()
