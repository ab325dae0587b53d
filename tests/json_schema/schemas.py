"""Schemas to write answers of: such as people send, and generated ones."""

import random

STRING, INTEGER, NUMBER, BOOLEAN, NULL = ({"type": kind} for kind in ("string", "integer", "number", "boolean", "null"))


def record(required=None, /, **properties):
    """A closed object, as OpenAI's strict mode wants it: everything is required unless `required` says what is."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
        "additionalProperties": False,
    }


def array(items, **more):
    return {"type": "array", "items": items, **more}


def enum(*values):
    return {"enum": list(values)}


def nullable(schema):
    return {"anyOf": [schema, NULL]}


ADDRESS = record(street=STRING, city=STRING, zip={"type": "string", "pattern": r"^\d{5}(-\d{4})?$"}, country=enum("DE", "FR", "US"))
PERSON = {
    "title": "Person", "type": "object", "required": ["name", "age"],
    "properties": {"name": {"title": "Name", "type": "string", "minLength": 1}, "age": {"type": "integer", "minimum": 0, "maximum": 150},
                   "email": {"type": "string", "format": "email"}, "nick": {"anyOf": [STRING, NULL], "default": None}},
}  # fmt: skip
TREE = {
    "$ref": "#/$defs/node",
    "$defs": {"node": record(["value"], value=INTEGER, children=array({"$ref": "#/$defs/node"}, maxItems=3))},
}
EXPRESSION = {
    "$defs": {
        "expression": {"anyOf": [NUMBER, {"$ref": "#/$defs/binary"}, {"$ref": "#/$defs/name"}]},
        "name": {"type": "string", "pattern": "^[a-z_][a-z0-9_]*$"},
        "binary": record(op=enum("+", "-", "*", "/"), left={"$ref": "#/$defs/expression"}, right={"$ref": "#/$defs/expression"}),
    },
    "$ref": "#/$defs/expression",
}
EVENTS = {
    "oneOf": [
        record(type={"const": "message"}, text={"type": "string", "maxLength": 280}),
        record(type={"const": "join"}, user=STRING, at={"type": "string", "format": "date-time"}),
        record(["type"], type={"const": "leave"}, reason=nullable(STRING)),
    ]
}
JSON_VALUE = {
    "$defs": {
        "value": {
            "anyOf": [
                STRING, NUMBER, BOOLEAN, NULL, array({"$ref": "#/$defs/value"}),
                {"type": "object", "additionalProperties": {"$ref": "#/$defs/value"}},
            ]
        }
    },
    "$ref": "#/$defs/value",
}  # fmt: skip

WRITTEN = [
    # tool calls
    record(["location"], location={"type": "string", "description": "City, e.g. Berlin"}, unit=enum("celsius", "fahrenheit")),
    record(query=STRING, top_k={"type": "integer", "minimum": 1, "maximum": 50}, filters=nullable(record([], site=STRING, lang=enum("en", "de")))),
    record(path={"type": "string", "pattern": "^/"}, content=STRING, mode=enum("w", "a")),
    record(sql={"type": "string", "pattern": "^SELECT "}, params=array({"type": ["string", "number", "null"]})),
    record(to=array({"type": "string", "format": "email"}, minItems=1, maxItems=5), subject={"type": "string", "maxLength": 120}, body=STRING),
    record(name=enum("get_weather", "send_mail"), arguments={"type": "object"}),
    {"anyOf": [record(name={"const": "add"}, arguments=record(a=NUMBER, b=NUMBER)), record(name={"const": "now"}, arguments=record())]},
    array(record(name=STRING, arguments={"type": "object"}), minItems=1, maxItems=4),
    record(start={"type": "string", "format": "date-time"}, end={"type": "string", "format": "date-time"}, attendees=array(STRING)),
    record(x={"type": "integer", "minimum": 0, "maximum": 1919}, y={"type": "integer", "minimum": 0, "maximum": 1079}, button=enum("left", "right")),
    record([], properties=STRING, required=BOOLEAN, type=INTEGER),
    {"type": "object", "properties": {}},
    {"type": "object"},
    # extraction
    PERSON,
    array(PERSON),
    record(people=array(PERSON, minItems=1), addresses=array(ADDRESS)),
    ADDRESS,
    record(invoice={"type": "string", "pattern": "^INV-[0-9]{6}$"}, date={"type": "string", "format": "date"},
           total={"type": "number", "minimum": 0}, lines=array(record(item=STRING, qty={"type": "integer", "minimum": 1}, price={"type": "number", "exclusiveMinimum": 0}))),
    record(sentiment=enum("positive", "neutral", "negative"), confidence={"type": "number", "minimum": 0, "maximum": 1}),
    record(labels=array(enum("bug", "feature", "question", "docs"), uniqueItems=True, minItems=1)),
    record(entities=array(record(text=STRING, kind=enum("PER", "ORG", "LOC"), start={"type": "integer", "minimum": 0}, end={"type": "integer", "minimum": 0}))),
    record(answer=BOOLEAN, because={"type": "string", "minLength": 10, "maxLength": 200}),
    record(reasoning=STRING, answer=enum("A", "B", "C", "D")),
    record(steps=array(record(explanation=STRING, output=STRING)), final_answer=STRING),
    record(title={"type": "string", "minLength": 3, "maxLength": 60}, year={"type": "integer", "minimum": 1888, "maximum": 2100}, rating={"type": "number", "minimum": 0, "maximum": 10}),
    record(iban={"type": "string", "pattern": "^[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}$"}, amount={"type": "string", "pattern": r"^-?[0-9]+\.[0-9]{2}$"}),
    record(phone={"type": "string", "pattern": r"^\+?[0-9]{7,15}$"}, fax=nullable({"type": "string", "pattern": r"^\+?[0-9]{7,15}$"})),
    record(color={"type": "string", "pattern": "^#[0-9a-fA-F]{6}$"}, alpha={"type": "number", "minimum": 0, "maximum": 1}),
    {"type": "object", "additionalProperties": {"type": "integer"}},
    {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}, "maxProperties": 5, "minProperties": 1},
    {"type": "object", "properties": {"id": INTEGER}, "required": ["id"], "additionalProperties": STRING},
    {"type": "object", "propertyNames": {"pattern": "^[a-z]{2}$"}, "additionalProperties": {"type": "string", "maxLength": 20}},
    {"type": "object", "patternProperties": {"^x-": STRING, "^[0-9]+$": INTEGER}, "additionalProperties": False},
    {"type": "object", "patternProperties": {"_at$": {"type": "string", "format": "date"}}, "properties": {"id": INTEGER, "made_at": True}, "required": ["id", "made_at"]},
    # as OpenAPI documents and Pydantic have them
    record(id={"type": "integer", "format": "int64"}, uuid={"type": "string", "format": "uuid"}, status=enum("available", "pending", "sold"),
           photoUrls=array({"type": "string", "format": "uri"}), ratio={"type": "number", "format": "double"}),
    record(host={"type": "string", "format": "hostname"}, port={"type": "integer", "minimum": 1, "maximum": 65535}, ip={"anyOf": [{"type": "string", "format": "ipv4"}, {"type": "string", "format": "ipv6"}]}),
    record(kind=enum("a"), every={"type": "string", "format": "duration"}, at={"type": "string", "format": "time"}),
    {"$defs": {"Color": {"enum": ["red", "green"], "title": "Color", "type": "string"}}, "properties": {"color": {"$ref": "#/$defs/Color", "default": "red"}}, "title": "M", "type": "object"},
    {"$defs": {"Cat": record(pet=enum("cat"), meows=INTEGER), "Dog": record(pet=enum("dog"), barks=NUMBER)},
     "type": "object", "required": ["pet"], "properties": {"pet": {"oneOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}], "discriminator": {"propertyName": "pet"}}}},
    {"allOf": [PERSON, {"properties": {"salary": {"type": "number", "minimum": 0}}, "required": ["salary"]}]},
    {"allOf": [{"$ref": "#/$defs/base"}, {"properties": {"b": {"minimum": 10}}, "required": ["b"]}], "$defs": {"base": {"type": "object", "properties": {"a": STRING, "b": INTEGER}, "required": ["a"]}}},
    {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "definitions": {"p": {"type": "array", "items": [NUMBER, NUMBER], "additionalItems": False, "minItems": 2}},
     "properties": {"points": {"type": "array", "items": {"$ref": "#/definitions/p"}}}, "required": ["points"]},
    {"$schema": "https://json-schema.org/draft/2019-09/schema", "type": "array", "items": {"type": "integer"}, "maxItems": 4},
    {"type": "object", "properties": {"card": STRING, "billing": STRING, "cvv": {"type": "string", "pattern": "^[0-9]{3}$"}}, "dependentRequired": {"card": ["billing", "cvv"]}},
    {"type": "object", "properties": {"a": INTEGER, "b": INTEGER}, "dependentSchemas": {"a": {"properties": {"b": {"minimum": 5}}, "required": ["b"]}}},
    {"type": "object", "properties": {"a": STRING, "b": STRING, "c": STRING, "d": STRING}, "minProperties": 2, "maxProperties": 3},
    # recursion
    TREE,
    EXPRESSION,
    JSON_VALUE,
    record(value=INTEGER, next=nullable({"$ref": "#"})),
    {"$ref": "#/$defs/a", "$defs": {"a": record(["n"], n=INTEGER, b={"$ref": "#/$defs/b"}), "b": record(["s"], s=STRING, a={"$ref": "#/$defs/a"})}},
    {"type": "array", "items": {"anyOf": [INTEGER, {"$ref": "#"}]}},
    {"type": "object", "additionalProperties": {"$ref": "#"}},
    record(tag=enum("div", "span"), attributes={"type": "object", "additionalProperties": STRING}, children=array({"anyOf": [STRING, {"$ref": "#"}]})),
    # unions
    EVENTS,
    array(EVENTS),
    {"oneOf": [STRING, array(STRING)]},
    {"oneOf": [NULL, INTEGER, BOOLEAN, {"type": "string", "enum": ["auto", "none"]}]},
    {"oneOf": [record(a=INTEGER), record(b=INTEGER), record(c=INTEGER, d=STRING)]},
    {"oneOf": [{"type": "object", "properties": {"url": STRING}, "required": ["url"]}, {"type": "object", "properties": {"file": STRING, "page": INTEGER}, "required": ["file"]}]},
    {"oneOf": [{"type": "integer", "maximum": -1}, {"type": "integer", "minimum": 1}]},
    {"oneOf": [{"type": "string", "pattern": "^a"}, {"type": "string", "pattern": "^b"}, {"type": "integer"}]},
    {"anyOf": [{"type": "string", "maxLength": 3}, {"type": "string", "pattern": "^long"}]},
    {"type": ["integer", "string", "null"], "minimum": 5, "minLength": 5},
    {"not": {"type": ["object", "array"]}},
    {"type": ["string", "null"], "format": "date"},
    # plain values
    STRING, INTEGER, NUMBER, BOOLEAN, NULL, True, {},
    {"enum": ["a", 1, -2.5, 1e-7, None, True, [1, "b"], {"k": [None]}, "\u00e9\n\"\\\u0001"]},
    {"const": {"a": [1, {"b": "c"}], "": {}}},
    {"type": "string", "minLength": 2, "maxLength": 2},
    {"type": "string", "minLength": 600, "maxLength": 700},
    {"type": "string", "maxLength": 65536},
    {"type": "string", "pattern": r"^(\([0-9]{3}\))?[0-9]{3}-[0-9]{4}$"},
    {"type": "string", "pattern": "foo|bar"},
    {"type": "string", "pattern": "^[^\"\\\\<>]*$", "maxLength": 30},
    {"type": "string", "pattern": "^\\S+ \\w+[.!?]$", "minLength": 6},
    {"allOf": [{"type": "string", "pattern": "^[a-z]+"}, {"pattern": "[0-9]+$"}], "maxLength": 10},
    {"type": "integer", "multipleOf": 5, "minimum": 10, "maximum": 1000},
    {"type": "number", "multipleOf": 3},
    {"type": "number", "exclusiveMinimum": -1.5, "exclusiveMaximum": 2.25},
    {"type": "number", "minimum": 99.5, "maximum": 100000.125},
    {"type": "integer", "minimum": -1000000000000, "maximum": 7},
    {"type": "number", "exclusiveMinimum": 0},
    {"type": "integer", "exclusiveMaximum": 0},
    {"type": "array", "prefixItems": [INTEGER, STRING, BOOLEAN], "items": False, "minItems": 2},
    {"type": "array", "prefixItems": [INTEGER], "items": STRING, "maxItems": 5},
    {"type": "array", "items": array(NUMBER, minItems=3, maxItems=3), "minItems": 3, "maxItems": 3},
    *({"type": "string", "format": name} for name in ("date", "time", "date-time", "duration", "uuid", "ipv4", "ipv6", "hostname", "email", "uri", "json-pointer")),
    {"type": "integer", "format": "int32"},
]  # fmt: skip


class Maker:
    """Makes schemas out of every keyword that is supported, some of them nested, some of them recursive."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.uses_definitions = False

    def some(self, *choices):
        return self.random.choice(choices)

    def maybe(self, chance=0.5):
        return self.random.random() < chance

    def between(self, low, high):
        return self.random.randint(low, high)

    def document(self):
        schema = self.schema(3)
        if self.uses_definitions:
            schema = {"$defs": {"d": self.leaf(), "t": {"anyOf": [NULL, record(v=self.leaf(), t=nullable({"$ref": "#/$defs/t"}))]}}, **schema}
        return schema

    def schema(self, depth):
        if depth == 0 or self.maybe(0.2):
            return self.leaf()
        return self.some(self.object, self.object, self.array, self.union, self.both, self.reference)(depth)

    def leaf(self):
        return self.some(self.string, self.integer, self.number, self.enum, lambda: self.some(BOOLEAN, NULL, {"type": ["boolean", "null"]}))()

    def string(self):
        schema = {"type": "string"}
        kind = self.between(0, 4)
        if kind == 0:
            schema["format"] = self.some("date", "time", "date-time", "uuid", "ipv4", "ipv6", "email", "hostname", "uri", "duration")
        elif kind == 1:
            schema["pattern"] = self.pattern()
        if kind in (1, 2) and self.maybe(0.6):
            schema["maxLength"] = self.between(8, 40)
        if kind == 2 and self.maybe():
            schema["minLength"] = self.between(0, 5)
        return schema

    def pattern(self):
        atom = lambda: self.some("[a-z]", "[A-Z0-9_]", "x", "[0-9]", "(ab|c)", "é", "\\.", "[^a-c\\s]", "\\d", "\\w", "-")
        body = "".join(atom() + self.some("", "+", "*", "?", "{2}", "{1,3}") for _ in range(self.between(1, 4)))
        return self.some("^", "") + body + self.some("$", "")

    def integer(self):
        schema, low = {"type": "integer"}, self.between(-300, 300)
        if self.maybe():
            schema[self.some("minimum", "exclusiveMinimum")] = low
        if self.maybe():
            schema[self.some("maximum", "exclusiveMaximum")] = low + self.between(10, 100000)
        if self.maybe(0.2):
            schema["multipleOf"] = self.some(2, 3, 5, 7, 10)
        return schema

    def number(self):
        schema, low = {"type": "number"}, round(self.random.uniform(-200, 200), self.between(0, 3))
        if self.maybe():
            schema[self.some("minimum", "exclusiveMinimum")] = low
        if self.maybe():
            schema[self.some("maximum", "exclusiveMaximum")] = round(low + self.random.uniform(0.01, 1000), 4)
        return schema

    def enum(self):
        values = ["red", "green", "blue", 1, 2, 3.5, None, True, "it's", "\t", "ü", [1, 2], {"a": 1}]
        return {"enum": self.random.sample(values, self.between(1, 5))}

    def object(self, depth):
        names = self.random.sample(["a", "b", "name", "id", "key-1", "ü", "quo\"te", "list", "x_y"], self.between(0, 5))
        schema = {"type": "object", "properties": {name: self.schema(depth - 1) for name in names}}
        schema["required"] = [name for name in names if self.maybe()]
        others = self.between(0, 5)
        if others < 2:
            schema["additionalProperties"] = False
        elif others == 2:
            schema["additionalProperties"] = self.some(True, self.leaf())
        elif others == 3:
            schema["patternProperties"] = {self.some("^x-", "_id$", "^[0-9]+$"): self.leaf()}
        if self.maybe(0.2):
            schema["maxProperties"] = len(schema["required"]) + self.between(0, 2)
        if self.maybe(0.1) and names:
            schema["minProperties"] = self.between(0, len(names))
        if self.maybe(0.1) and len(names) > 1:
            schema["dependentRequired"] = {names[0]: names[1:2]}
        return schema

    def array(self, depth):
        schema = {"type": "array", "items": self.schema(depth - 1)}
        if self.maybe(0.2):
            schema["prefixItems"] = [self.schema(depth - 1) for _ in range(self.between(1, 3))]
            if self.maybe():
                schema["items"] = False
        if self.maybe():
            schema["maxItems"] = self.between(3, 6)
        if self.maybe(0.3) and schema["items"] is not False:
            schema["minItems"] = self.between(0, 3)
        if self.maybe(0.1):
            return {"type": "array", "items": {"enum": ["p", "q", "r", 4]}, "uniqueItems": True, "minItems": self.between(0, 2)}
        return schema

    def union(self, depth):
        kinds = self.between(0, 2)
        if kinds == 0:
            return {"anyOf": [self.schema(depth - 1) for _ in range(self.between(1, 3))]}
        if kinds == 1:
            return {"oneOf": [record(kind={"const": name}, value=self.schema(depth - 1)) for name in ("one", "two", "three")[: self.between(1, 3)]]}
        return {"oneOf": [self.string(), self.integer(), {"type": "array", "items": self.leaf()}]}

    def both(self, depth):
        a, b = self.object(depth), self.object(depth)
        return {"allOf": [a, b]} if self.maybe() else {**a, "allOf": [b]}

    def reference(self, depth):
        self.uses_definitions = True
        return {"$ref": self.some("#/$defs/d", "#/$defs/t")}


def generated(count):
    return [Maker(seed).document() for seed in range(count)]
