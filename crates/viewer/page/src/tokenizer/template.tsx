// Chat template editor: renders example messages live and reports errors by line.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { post } from "../api/request";
import { useRequest, useDocument } from "../api/resource";
import type { Message, Templates } from "../api/token-types";
import type { Model } from "../api/types";
import { editsOf, stage, withKey } from "../metadata/edits";
import { link } from "../route";
import { Copy } from "../ui/copy";
import { Empty, ErrorMessage, Loaded } from "../ui/states";
import { Messages } from "./messages";
import { Rendered } from "./rendered";
import { Source } from "./template-source";

const TEMPLATE_KEY = "tokenizer.chat_template";

const SAMPLE: Message[] = [
  { role: "system", content: "You are a helpful assistant." },
  { role: "user", content: "What is a GGUF file?" },
];

export function TemplateView({ model }: { model: Model }) {
  const templates = useDocument<Templates>(`models/${model.id}/templates`);
  return <Loaded resource={templates} render={({ templates }) => <Editor model={model} templates={templates} />} />;
}

function Editor({ model, templates }: { model: Model; templates: Templates["templates"] }) {
  const number = useSignal(0);
  const template = templates[number.value];
  const source = useSignal<string | null>(null);
  const messages = useSignal(SAMPLE);
  const tools = useSignal("");
  const prompt = useSignal(true);
  const revision = useSignal(0);
  // Debounce requests while typing.
  useEffect(() => {
    const timer = setTimeout(() => (revision.value += 1), 200);
    return () => clearTimeout(timer);
  }, [source.value, messages.value, tools.value]);
  const parsed = parse(tools.value);
  const request = {
    name: template?.name ?? null,
    source: source.value,
    messages: messages.value,
    tools: parsed.value,
    add_generation_prompt: prompt.value,
  };
  const ready = (template !== undefined || source.value !== null) && parsed.error === null;
  const answer = useRequest<{ text: string }>(
    ready ? `${model.id} ${revision.value} ${number.value} ${prompt.value}` : null,
    (stop) => post<{ text: string }>(`models/${model.id}/template`, request, stop),
  );
  const error = answer.failure;
  const line = error && typeof error.detail.line === "number" ? error.detail.line : null;
  return (
    <div class="template">
      <section aria-labelledby="messages" class="template-messages">
        <h2 id="messages">Messages</h2>
        <Messages messages={messages.value} onChange={(to) => (messages.value = to)} />
        <label class="check">
          <input
            type="checkbox"
            checked={prompt.value}
            onChange={(event) => (prompt.value = event.currentTarget.checked)}
          />{" "}
          <span>
            Add generation prompt (<code>add_generation_prompt</code>)
          </span>
        </label>
        <details>
          <summary>Tools</summary>
          <label class="field">
            JSON array
            <textarea
              rows={4}
              spellcheck={false}
              value={tools.value}
              onInput={(event) => (tools.value = event.currentTarget.value)}
            />
          </label>
          {parsed.error && <p class="problem">{parsed.error}</p>}
        </details>
      </section>
      <section aria-labelledby="rendered" class="template-text">
        <h2 id="rendered">Rendered prompt</h2>
        {!ready && parsed.error === null && <Empty>The model has no chat template. Write one below to try it.</Empty>}
        {error && <ErrorMessage failure={error} />}
        {ready && !error && (
          <Loaded
            resource={answer}
            render={({ text }) => <Rendered model={model} text={text} />}
            fallback={<div class="rendered-room" />}
          />
        )}
      </section>
      <section aria-labelledby="source" class="template-source">
        <div class="section-head">
          <h2 id="source">Template</h2>
          {templates.length > 1 && (
            <select
              aria-label="Template"
              value={number.value}
              onChange={(event) => {
                number.value = Number(event.currentTarget.value);
                source.value = null;
              }}
            >
              {templates.map(({ name }, i) => (
                <option key={i} value={i}>
                  {name ?? "default"}
                </option>
              ))}
            </select>
          )}
          <div class="buttons">
            {source.value !== null && model.editable && (
              <button
                type="button"
                class="primary"
                disabled={error !== null}
                onClick={() => {
                  const key = `${TEMPLATE_KEY}${template?.name ? `.${template.name}` : ""}`;
                  stage(model.id, withKey(editsOf(model.id), key, { value: source.value ?? "", type: "str" }));
                }}
              >
                Stage this template
              </button>
            )}
            {source.value !== null && (
              <button type="button" onClick={() => (source.value = null)}>
                Reset to the model's template
              </button>
            )}
            {(source.value ?? template?.text) && (
              <Copy text={source.value ?? template?.text ?? ""} label="Copy template" />
            )}
            {template && <a href={link([model.id, "metadata"], { key: template.key_n })}>key</a>}
          </div>
        </div>
        <Source
          text={source.value ?? template?.text ?? ""}
          errorLine={line}
          onChange={(text) => (source.value = text)}
        />
      </section>
    </div>
  );
}

function parse(text: string): { value: unknown; error: string | null } {
  if (text.trim() === "") return { value: null, error: null };
  try {
    return { value: JSON.parse(text), error: null };
  } catch (error) {
    return { value: null, error: error instanceof Error ? error.message : String(error) };
  }
}
