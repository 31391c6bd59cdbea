// Pictures of A, B and their difference, which move together. X flips between A and B.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { address } from "../api/request";
import { useDocument } from "../api/resource";
import type { TensorFacts } from "../api/tensor-types";
import type { Camera } from "../heatmap/camera";
import { Heatmap } from "../heatmap/heatmap";
import { tensorSource } from "../heatmap/source";
import type { Source } from "../heatmap/tiles";
import { setParams } from "../route";
import { param } from "../ui/view";

const SHOWN = [
  { name: "all", title: "A | B | difference" },
  { name: "a", title: "A" },
  { name: "b", title: "B" },
  { name: "difference", title: "Difference" },
];

export function Pictures({ a, b, name, difference }: { a: number; b: number; name: string; difference: Source }) {
  const shown = SHOWN.find((entry) => entry.name === param("show"))?.name ?? "all";
  const shared = useSignal<Camera | null>(null);
  const [sourceA, sourceB] = [useSource(a, name), useSource(b, name)];
  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      const isTyping = (event.target as HTMLElement | null)?.matches("input, textarea, select") ?? false;
      if (event.key.toLowerCase() !== "x" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      setParams({ show: shown === "a" ? "b" : "a" });
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, [shown]);
  const pictures = [
    { name: "a", title: `A: ${name}`, source: sourceA },
    { name: "b", title: `B: ${name}`, source: sourceB },
    { name: "difference", title: `B − A: ${name}`, source: difference },
  ].filter((picture) => shown === "all" || picture.name === shown);
  return (
    <section aria-label="Pictures" class="pictures">
      <div class="segments" role="group" aria-label="Pictures">
        {SHOWN.map((entry) => (
          <button
            key={entry.name}
            type="button"
            aria-pressed={shown === entry.name}
            onClick={() => setParams({ show: entry.name === "all" ? null : entry.name })}
          >
            {entry.title}
          </button>
        ))}
      </div>{" "}
      <span class="faint">
        <kbd>X</kbd> flips between A and B
      </span>
      <div class={`pictures-row of-${pictures.length}`}>
        {pictures.map(
          (picture) =>
            picture.source && (
              <div key={picture.name} data-picture={picture.name}>
                <h3>{SHOWN.find((entry) => entry.name === picture.name)?.title}</h3>
                <Heatmap
                  source={picture.source}
                  label={picture.title}
                  at={param("at") || null}
                  shared={shared}
                  onMove={(at) => setParams({ at })}
                />
              </div>
            ),
        )}
      </div>
    </section>
  );
}

/** Returns the source of a tensor of a model, or null until its facts are loaded. */
function useSource(model: number, name: string): Source | null {
  const facts = useDocument<TensorFacts>(address(["models", model, "tensor"], { name }));
  return useMemo(
    () =>
      facts.value?.decodable ? tensorSource(model, { ...facts.value, block: facts.value.block_weights }, "") : null,
    [model, facts.value],
  );
}
