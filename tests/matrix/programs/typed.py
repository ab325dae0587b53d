"""The typed answer that programs with pydantic ask for."""

from heard import Color
from pydantic import BaseModel, Field


class Person(BaseModel):
    """A person."""

    name: str = Field(max_length=20)
    age: int = Field(ge=0, le=130)
    color: Color
