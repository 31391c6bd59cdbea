// Details of a key: value, documentation, offset, bytes, editing.
import { useSignal } from "@preact/signals";
import { address, get } from "../api/request";
import { useDocument } from "../api/resource";
import type { KeyValue, Model } from "../api/types";
import { bytes, hex, plural, visible, whole } from "../format";
import { link } from "../route";
import { Copy } from "../ui/copy";
import { Loaded } from "../ui/states";
import { RawBytes } from "../ui/raw-bytes";
import { ArrayValue } from "./array";
import { EditKey } from "./edit-key";

/** Bytes of a string per response (docs/viewer-api.md). */
const PAGE = 65_536;

export function KeyDetail({ model, n }: { model: Model; n: number }) {
  const key = useDocument<KeyValue>(address(["models", model.id, "key"], { n }));
  return <Loaded resource={key} render={(value) => <Detail model={model} value={value} />} />;
}

function Detail({ model, value }: { model: Model; value: KeyValue }) {
  const [start, end] = value.span;
  return (
    <article aria-labelledby="key-title">
      <h2 id="key-title" class="detail-title">
        {visible(value.name)}
        {value.name_bytes > 1000 && <span class="faint"> … {bytes(value.name_bytes)} total</span>}
      </h2>
      <p class="detail-about">
        <span class="chip">
          {value.element_type
            ? `${value.type.toLowerCase()} of ${value.element_type.toLowerCase()}`
            : value.type.toLowerCase()}
        </span>
        {value.count !== null && <span>{plural(value.count, "element")}</span>}
        {value.unit && <span>unit: {value.unit}</span>}
        <a href={link([model.id, "file"], { file: value.file, offset: start })}>
          bytes {hex(start)} to {hex(end)}
        </a>
      </p>
      {value.damage !== null && <p class="problem">The file is damaged: {value.damage}.</p>}
      {value.documentation ? (
        <p class="documentation">{value.documentation}</p>
      ) : (
        <p class="faint">
          {value.standard
            ? "No documentation."
            : "Not a standard GGUF key. The program that wrote it defines its meaning."}
        </p>
      )}
      {value.default !== null && <p class="faint">Default: {value.default}</p>}
      <div class="section-head value-head">
        <h3>Value</h3>
        <Copy text={() => wholeValue(model, value)} label="Copy value" />
      </div>
      {value.array ? (
        <ArrayValue model={model} value={value} />
      ) : value.string ? (
        <StringValue model={model} value={value} />
      ) : (
        <p class="value-single">
          {value.text}
          {value.label && <span class="chip value-label">{visible(value.label)}</span>}
        </p>
      )}
      {model.editable && <EditKey key={value.text} model={model} value={value} />}
      <h3>Bytes</h3>
      <RawBytes model={model} file={value.file} start={start} length={Math.min(end - start, 512)} of={end - start} />
    </article>
  );
}

/** Returns the whole value as text: a string as it is, an array as JSON with at most 100 000 elements. */
async function wholeValue(model: Model, value: KeyValue): Promise<string> {
  const page = (offset: number, limit: number) =>
    get<KeyValue>(address(["models", model.id, "key"], { n: value.n, offset, limit }));
  if (value.string) {
    let text = "";
    for (let offset = 0; offset < value.string.bytes; offset += PAGE)
      text += (await page(offset, PAGE)).string?.text ?? "";
    return text;
  }
  if (!value.array) return String(value.value ?? value.text);
  const elements: unknown[] = [];
  for (let offset = 0; offset < Math.min(100_000, value.array.total); offset += 1000)
    elements.push(...((await page(offset, 1000)).array?.elements ?? []).map((element) => element.value));
  return JSON.stringify(elements);
}

/** A string value in pages, since it may have megabytes. */
function StringValue({ model, value }: { model: Model; value: KeyValue }) {
  const offset = useSignal(0);
  const other = useDocument<KeyValue>(
    offset.value > 0 ? address(["models", model.id, "key"], { n: value.n, offset: offset.value }) : null,
  );
  const string = (offset.value > 0 ? other.value : value)?.string ?? value.string;
  if (!string) return null;
  return (
    <>
      <pre class="value-text" tabIndex={0} aria-label="Text">
        {string.text}
      </pre>
      <p class="faint">
        {string.bytes > PAGE
          ? `bytes ${whole(string.offset)} to ${whole(Math.min(string.bytes, string.offset + PAGE))} of ${whole(string.bytes)}`
          : `${whole(string.bytes)} bytes`}
      </p>
      {string.bytes > PAGE && (
        <div class="buttons">
          <button type="button" disabled={offset.value === 0} onClick={() => (offset.value -= PAGE)}>
            Previous
          </button>
          <button type="button" disabled={offset.value + PAGE >= string.bytes} onClick={() => (offset.value += PAGE)}>
            Next
          </button>
        </div>
      )}
    </>
  );
}
