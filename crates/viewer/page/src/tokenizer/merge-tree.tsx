// Merges of a word as a tree and as a list.
import { useMemo } from "preact/hooks";
import type { Word } from "../api/token-types";
import { significant, visible, whole } from "../format";
import { type Node, trees } from "./merge-forest";

/** Pixels between symbols and between levels. */
const COLUMN_WIDTH = 58;
const LEVEL_HEIGHT = 46;

export function MergeTree({ word }: { word: Word }) {
  const roots = useMemo(() => trees(word), [word]);
  const highest = Math.max(...roots.map((node) => node.height));
  const width = word.symbols.length * COLUMN_WIDTH;
  const height = highest * LEVEL_HEIGHT + 44;
  if (word.symbols.length > 64) return <p class="faint">The word is too long to draw its merges.</p>;
  return (
    <>
      <div class="tree-scroll" tabIndex={0} role="group" aria-label="Merge tree">
        <svg
          class="tree"
          width={width}
          height={height}
          viewBox={`0 0 ${width} ${height}`}
          role="img"
          aria-label={`${word.merges.length} merges combine ${word.symbols.length} symbols into ${roots.length} tokens`}
        >
          {roots.map((node) => (
            <Branch key={node.x} node={node} highest={highest} root />
          ))}
        </svg>
      </div>
      {word.merges.length > 0 && (
        <ol class="merge-steps" aria-label="Merges in order">
          {word.merges.map((merge, i) => (
            <li key={i}>
              <code>{visible(merge.left)}</code> + <code>{visible(merge.right)}</code>{" "}
              <span class="faint">
                {merge.rank !== null
                  ? `rank ${whole(merge.rank)}`
                  : merge.score !== null
                    ? `score ${significant(merge.score)}`
                    : ""}
              </span>
            </li>
          ))}
        </ol>
      )}
    </>
  );
}

function Branch({ node, highest, root = false }: { node: Node; highest: number; root?: boolean }) {
  const x = (node.x + 0.5) * COLUMN_WIDTH;
  const y = (highest - node.height) * LEVEL_HEIGHT + 20;
  const text = visible(node.text).replaceAll(" ", "·");
  return (
    <g>
      {node.parts?.map((part) => {
        const to = { x: (part.x + 0.5) * COLUMN_WIDTH, y: (highest - part.height) * LEVEL_HEIGHT + 20 };
        return (
          <g key={part.x}>
            <path class="tree-line" d={`M${x} ${y + 12} C${x} ${y + 28} ${to.x} ${to.y - 28} ${to.x} ${to.y - 13}`} />
            <Branch node={part} highest={highest} />
          </g>
        );
      })}
      <text x={x} y={y + 4} class={root ? "tree-root" : node.parts ? "tree-merged" : "tree-symbol"}>
        {text.length > 12 ? `${text.slice(0, 11)}…` : text}
      </text>
      {node.step > 0 && (
        <text x={x} y={y - 10} class="tree-step">
          {node.step}
        </text>
      )}
    </g>
  );
}
