// Help for the keyboard.
import { Dialog } from "../ui/dialog";

const SHORTCUTS: [string, string][] = [
  ["Ctrl K", "search tensors, keys, tokens, offsets and views"],
  ["/", "search in the current view"],
  ["?", "this help"],
  ["Esc", "close a dialog, clear a search"],
  ["↑ ↓ Page Home End", "move in lists"],
  ["→ ←", "expand and collapse a layer; next and previous tab"],
  ["Enter", "open the row; show the weights around the marked one"],
  ["Arrow keys", "heat map: pan, or move from weight to weight when they are large"],
  ["+ − 0", "heat map, file map, graph: zoom in, zoom out, fit"],
  ["Ctrl scroll", "zoom at the pointer"],
  ["X", "comparison of pictures: flip between A and B"],
];

export function Shortcuts({ onClose }: { onClose: () => void }) {
  return (
    <Dialog label="Keyboard" onClose={onClose}>
      <div class="shortcuts">
        <h2>Keyboard</h2>
        <dl>
          {SHORTCUTS.map(([keys, about]) => (
            <div key={keys}>
              <dt>
                {keys.split(" ").map((key) => (
                  <kbd key={key}>{key}</kbd>
                ))}
              </dt>
              <dd>{about}</dd>
            </div>
          ))}
        </dl>
        <form method="dialog">
          <button type="submit">Close</button>
        </form>
      </div>
    </Dialog>
  );
}
