// LangChain for JavaScript: a bound tool called and answered, a typed answer, a stream.
import { readFileSync } from "node:fs";
import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI } from "@langchain/openai";
import { createAgent } from "langchain";
import { z } from "zod";

const { url, model } = JSON.parse(readFileSync(0, "utf8"));
const facts = [];
const check = (claim, whatever) => {
  if (!whatever) throw new Error(`not so: ${claim}: ${whatever}`);
  facts.push(claim);
};
const cities = ["Paris", "Rome", "Oslo"];
const population = tool(async ({ city }) => String(1000 * city.length), {
  name: "population", description: "How many people live in a city", schema: z.object({ city: z.enum(cities) }),
});
const person = z.object({ name: z.string().max(20), age: z.number().int().min(0).max(130), color: z.enum(["red", "green", "blue"]) });
const ask = "How many people live in Paris?";

for (const [path, useResponsesApi] of [["Chat Completions", false], ["Responses", true]]) {
  const one = new ChatOpenAI({
    model, apiKey: "none", temperature: 0, maxTokens: 100, maxRetries: 0, useResponsesApi, configuration: { baseURL: `${url}/v1` },
  });
  const chunks = [];
  for await (const chunk of await one.stream(ask)) chunks.push(chunk.text);
  check(`${path}: a stream`, chunks.length > 3 && chunks.join(""));
  const called = await one.bindTools([population], { tool_choice: "population", parallel_tool_calls: false }).invoke([new HumanMessage(ask)]);
  const [call] = called.tool_calls;
  check(`${path}: a forced call`, cities.includes(call.args.city));
  const result = new ToolMessage({ content: await population.invoke(call.args), tool_call_id: call.id });
  check(`${path}: an answer behind it`, (await one.bindTools([population]).invoke([new HumanMessage(ask), called, result])).text);
  for (const method of ["jsonSchema", "functionCalling"]) {
    const typed = await one.withStructuredOutput(person, { method, name: "person" }).invoke("Invent a person.");
    check(`${path}: a typed answer by ${method}`, person.parse(typed));
  }
  const done = await createAgent({ model: one, tools: [population] }).invoke({ messages: [new HumanMessage(ask)] });
  check(`${path}: an agent's turn`, done.messages.at(-1).text);
}
console.log("\n" + JSON.stringify(facts));
