// Decoded fields of a quantization block.
import type { Block } from "../api/tensor-types";
import { exact } from "../format";
import type { Mark } from "./block";

export function BlockFields({ block, mark, onMark }: { block: Block; mark: Mark; onMark: (mark: Mark) => void }) {
  return (
    <section aria-labelledby="block-fields">
      <h3 id="block-fields">Fields</h3>
      <dl class="block-fields">
        {block.fields.map((field, f) => (
          <div key={field.name}>
            <dt>
              <span class={`dot field-${f % 8}`} aria-hidden="true" />
              <code>{field.name}</code>{" "}
              <span class="faint">
                {field.about}, {field.items.length > 1 ? `${field.items.length} x ${field.kind}` : field.kind}
              </span>
            </dt>
            <dd class="items">
              {field.items.map((item, i) => {
                const marked =
                  mark !== null && "field" in mark
                    ? mark.field === f && mark.item === i
                    : mark !== null &&
                      (block.weights[mark.weight]?.items.some(([a, b]) => a === f && b === i) ?? false);
                return (
                  <span
                    key={i}
                    class={`item${marked ? " marked" : ""}`}
                    onPointerEnter={() => onMark({ field: f, item: i })}
                    title={`${field.name}[${i}]: bits ${item.bits.map(([first, count]) => (count === 1 ? first : `${first} to ${first + count - 1}`)).join(", ")}`}
                  >
                    {item.value === null ? item.raw : exact(item.value)}
                  </span>
                );
              })}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
