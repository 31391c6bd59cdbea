// Weights of a quantization block, and the fields of the selected weight.
import { useId } from "preact/hooks";
import type { Block } from "../api/tensor-types";
import { exact, significant, whole } from "../format";
import { useWidth } from "../ui/width";
import type { Mark } from "./block";

/** Pixels that the longest formatted weight needs. */
const WEIGHT_WIDTH = 74;

export function BlockWeights({ block, mark, onMark }: { block: Block; mark: Mark; onMark: (mark: Mark) => void }) {
  const id = useId();
  const { element, width } = useWidth<HTMLDivElement>();
  const across = width >= 8 * WEIGHT_WIDTH ? 8 : width >= 4 * WEIGHT_WIDTH ? 4 : 2;
  const at = mark !== null && "weight" in mark ? mark.weight : null;
  const uses = (weight: Block["weights"][number]) =>
    mark !== null &&
    "field" in mark &&
    weight.items.some(([field, item]) => field === mark.field && item === mark.item);
  function key(event: KeyboardEvent): void {
    const step = {
      ArrowRight: 1,
      ArrowLeft: -1,
      ArrowDown: across,
      ArrowUp: -across,
      Home: -block.weights.length,
      End: block.weights.length,
    }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    onMark({ weight: Math.max(0, Math.min(block.weights.length - 1, (at ?? 0) + step)) });
  }
  return (
    <section aria-labelledby={`${id}-title`}>
      <h3 id={`${id}-title`}>Weights</h3>
      <div
        ref={element}
        class="weights"
        role="listbox"
        aria-labelledby={`${id}-title`}
        aria-activedescendant={at === null ? undefined : `${id}-${at}`}
        tabIndex={0}
        style={{ gridTemplateColumns: `repeat(${across}, minmax(0, 1fr))` }}
        onKeyDown={key}
      >
        {block.weights.map((weight, i) => (
          <span
            key={i}
            id={`${id}-${i}`}
            role="option"
            aria-selected={i === at}
            class={`weight${i === at ? " chosen" : ""}${uses(weight) ? " marked" : ""}`}
            title={String(weight.value)}
            onPointerEnter={() => onMark({ weight: i })}
            onClick={() => onMark({ weight: i })}
          >
            {significant(weight.value)}
          </span>
        ))}
      </div>
      <WeightFields block={block} at={at} />
    </section>
  );
}

/** Fields that the selected weight is decoded from. */
function WeightFields({ block, at }: { block: Block; at: number | null }) {
  const weight = at === null ? null : block.weights[at];
  return (
    <div class="weight-fields" role="status">
      {weight && at !== null ? (
        <>
          <p>
            Column {whole(block.column + at)}: <strong>{String(weight.value ?? "NaN")}</strong>
          </p>
          <ul>
            {weight.items.map(([field, item]) => {
              const entry = block.fields[field];
              const part = entry?.items[item];
              return (
                <li key={`${field}/${item}`}>
                  <span class={`dot field-${field % 8}`} aria-hidden="true" />
                  {entry?.name}
                  {(entry?.items.length ?? 0) > 1 && `[${item}]`} ={" "}
                  {part?.value === null ? part.raw : exact(part?.value ?? null)}
                </li>
              );
            })}
          </ul>
        </>
      ) : (
        <p class="faint">Select a weight to see how it is decoded.</p>
      )}
    </div>
  );
}
