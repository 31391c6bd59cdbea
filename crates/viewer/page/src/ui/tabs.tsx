// Tabs.
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

interface Props {
  label: string;
  tabs: { name: string; title: string; show: () => ComponentChildren }[];
  chosen: string;
  onChoose: (name: string) => void;
}

export function Tabs({ label, tabs, chosen, onChoose }: Props) {
  const id = useId();
  const current = tabs.find(({ name }) => name === chosen) ?? tabs[0];
  if (!current) return null;
  function key(event: KeyboardEvent): void {
    const at = tabs.findIndex(({ name }) => name === current?.name);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = tabs[(to + tabs.length) % tabs.length];
    if (!next) return;
    onChoose(next.name);
    document.getElementById(`${id}-${next.name}`)?.focus();
  }
  return (
    <>
      <div class="tabs" role="tablist" aria-label={label} onKeyDown={key}>
        {tabs.map(({ name, title }) => (
          <button
            key={name}
            id={`${id}-${name}`}
            type="button"
            role="tab"
            aria-selected={name === current.name}
            aria-controls={`${id}-panel`}
            tabIndex={name === current.name ? 0 : -1}
            onClick={() => onChoose(name)}
          >
            {title}
          </button>
        ))}
      </div>
      <div id={`${id}-panel`} class="panel" role="tabpanel" aria-labelledby={`${id}-${current.name}`}>
        {current.show()}
      </div>
    </>
  );
}
