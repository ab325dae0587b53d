// Asks the server through OpenAI's client for Node; prints what it heard as one line of JSON.
import OpenAI from 'openai';
import fs from 'node:fs';

const question = JSON.parse(fs.readFileSync(0, 'utf8'));
const client = new OpenAI({baseURL: question.url + '/v1', apiKey: 'none', maxRetries: 0});
const how = {model: question.model, seed: question.seed, temperature: question.temperature};
const talk = {...how, messages: question.talk};
const form = {type: 'json_schema', json_schema: {name: 'person', schema: question.person, strict: true}};
const tools = question.calling;

const told = ({choices: [choice], usage}) => ({
  content: choice.message.content,
  finish: choice.finish_reason,
  usage,
  calls: (choice.message.tool_calls ?? []).map((call) => [call.function.name, JSON.parse(call.function.arguments)]),
});

async function streamed(fields) {
  let content = '', finish = null, usage = null, chunks = 0;
  const calls = [];
  for await (const chunk of await client.chat.completions.create({...fields, stream: true, stream_options: {include_usage: true}})) {
    chunks += 1;
    usage = chunk.usage ?? usage;
    for (const choice of chunk.choices) {
      content += choice.delta.content ?? '';
      finish = choice.finish_reason ?? finish;
      for (const part of choice.delta.tool_calls ?? []) {
        calls[part.index] ??= [part.function.name, ''];
        calls[part.index][1] += part.function.arguments;
      }
    }
  }
  return {content, finish, usage, chunks, calls: calls.map(([name, text]) => [name, JSON.parse(text)])};
}

async function fault(ask) {
  try {
    await ask();
  } catch (error) {
    return [error.constructor.name, error.status, error.param, typeof error.requestID];
  }
}

async function streamed_text() {
  let text = '';
  for await (const chunk of await client.completions.create({...how, prompt: question.prompt, max_tokens: 24, stream: true})) text += chunk.choices[0].text;
  return text;
}

async function left() {
  const stream = await client.completions.create({...how, prompt: question.prompt, max_tokens: 400, stream: true, ignore_eos: true});
  for await (const chunk of stream) {
    stream.controller.abort();
    return chunk.choices[0].index;
  }
}

const helper = client.chat.completions.stream({...talk, ...tools});
const heard = {
  whole: told(await client.chat.completions.create({...talk, max_tokens: 24})),
  streamed: await streamed({...talk, max_tokens: 24}),
  called: told(await client.chat.completions.create({...talk, ...tools})),
  called_in_a_stream: await streamed({...talk, ...tools}),
  called_with_the_helper: told(await helper.finalChatCompletion()),
  person: JSON.parse((await client.chat.completions.create({...talk, max_tokens: 120, response_format: form})).choices[0].message.content),
  person_parsed: (await client.chat.completions.parse({...talk, max_tokens: 120, response_format: form})).choices[0].message.content,
  logprobs: (await client.chat.completions.create({...talk, max_tokens: 24, logprobs: true, top_logprobs: 2})).choices[0].logprobs.content,
  text: (await client.completions.create({...how, prompt: question.prompt, max_tokens: 24})).choices[0].text,
  text_in_a_stream: await streamed_text(),
  unknown: await fault(() => client.chat.completions.create({...talk, model: 'gpt-4'})),
  wrong: await fault(() => client.chat.completions.create({...talk, temperature: 9})),
  wrong_in_a_stream: await fault(() => client.chat.completions.create({...talk, top_p: 0, stream: true})),
  models: (await client.models.list()).data.map((model) => model.id),
  left: await left(),
};
process.stdout.write(JSON.stringify(heard) + '\n');
