// The AI SDK with its three providers: streamed text, an object of a schema, a tool called, run and answered.
import { readFileSync } from "node:fs";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, isStepCount, Output, streamText, tool } from "ai";
import { z } from "zod";

const { url, model } = JSON.parse(readFileSync(0, "utf8"));
const facts = [];
const check = (claim, whatever) => {
  if (!whatever) throw new Error(`not so: ${claim}: ${whatever}`);
  facts.push(claim);
};
const baseURL = `${url}/v1`;
const openai = createOpenAI({ baseURL, apiKey: "none" });
const models = {
  "openai, Responses": openai.responses(model),
  "openai, Chat Completions": openai.chat(model),
  "openai-compatible": createOpenAICompatible({ name: "quire", baseURL, apiKey: "none", supportsStructuredOutputs: true, includeUsage: true })(model),
  anthropic: createAnthropic({ baseURL, apiKey: "none" })(model),
};
const cities = ["Paris", "Rome", "Oslo"];
const schema = z.object({ name: z.string().max(20), age: z.number().int().min(0).max(130), color: z.enum(["red", "green", "blue"]) });
const brief = { temperature: 0, maxRetries: 0, maxOutputTokens: 100 };

for (const [name, one] of Object.entries(models)) {
  const pieces = [];
  const stream = streamText({ model: one, prompt: "How many people live in Paris?", ...brief, onError: ({ error }) => { throw error; } });
  for await (const piece of stream.textStream) pieces.push(piece);
  check(`${name}: a stream`, pieces.length > 3 && (await stream.usage).outputTokens > 3);
  const asked = [];
  const population = tool({
    description: "How many people live in a city", inputSchema: z.object({ city: z.enum(cities) }),
    execute: async ({ city }) => { asked.push(city); return 1000 * city.length; },
  });
  const called = await generateText({
    model: one, tools: { population }, stopWhen: isStepCount(2), prompt: "How many people live in Paris?", ...brief,
    prepareStep: ({ stepNumber }) => ({ toolChoice: stepNumber === 0 ? { type: "tool", toolName: "population" } : "auto" }),
  });
  check(`${name}: a tool called, run and answered`, asked.length > 0 && called.steps.length === 2);
  const typed = await generateText({ model: one, output: Output.object({ schema }), prompt: "Invent a person.", ...brief });
  check(`${name}: an object of a schema`, schema.parse(typed.output));
}
console.log("\n" + JSON.stringify(facts));
