// Page frame: model selection, navigation, notices, traffic.
import { useSignal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { changed, models, reload, traffic } from "./api/status";
import { offline } from "./api/request";
import type { Model, Traffic } from "./api/types";
import { bytes, plural } from "./format";
import { Changes } from "./metadata/changes";
import { countOf, editsOf } from "./metadata/edits";
import { Overview } from "./overview/overview";
import { navigate, link, model, view } from "./route";
import { fileName, modelName } from "./ui/model-name";
import { lazy } from "./ui/lazy";
import { Loading } from "./ui/states";
import { setTheme, theme, type Theme } from "./ui/theme";
import type { ViewProps } from "./ui/view";

const LAZY = {
  metadata: lazy(async () => (await import("./metadata/metadata")).Metadata),
  tensors: lazy(async () => (await import("./tensors/tensors")).Tensors),
  file: lazy(async () => (await import("./file/file")).FileView),
  tokenizer: lazy(async () => (await import("./tokenizer/tokenizer")).TokenizerView),
  graph: lazy(async () => (await import("./graph/graph")).GraphView),
  compare: lazy(async () => (await import("./compare/compare")).Compare),
  map: lazy(async () => (await import("./map/map")).MapView),
};
const { Show: Palette } = lazy(async () => (await import("./palette/palette")).Palette);
const { Show: Shortcuts } = lazy(async () => (await import("./palette/shortcuts")).Shortcuts);
const { Show: Compare } = LAZY.compare;

const VIEWS: { name: string; title: string; show: ComponentType<ViewProps>; broken?: boolean }[] = [
  { name: "overview", title: "Overview", show: Overview, broken: true },
  { name: "metadata", title: "Metadata", show: LAZY.metadata.Show },
  { name: "tensors", title: "Tensors", show: LAZY.tensors.Show },
  { name: "map", title: "Map", show: LAZY.map.Show },
  { name: "file", title: "File", show: LAZY.file.Show, broken: true },
  { name: "tokenizer", title: "Tokenizer", show: LAZY.tokenizer.Show },
  { name: "graph", title: "Graph", show: LAZY.graph.Show },
];

/** Starts to load the code of a view before it is shown. */
export function preloadView(name: string): void {
  void LAZY[name as keyof typeof LAZY]?.preload();
}

export function App() {
  const main = useRef<HTMLElement>(null);
  const all = models.value?.models;
  const current = all?.find((entry) => entry.id === model.value) ?? all?.[0];
  const title =
    view.value === "compare" ? "Compare" : (VIEWS.find(({ name }) => name === view.value)?.title ?? "Overview");
  const first = useRef(true);
  useEffect(() => {
    document.title = current ? `${title} – ${modelName(current)}` : "gguf view";
    // Move the keyboard focus to the new view.
    if (!first.current) main.current?.focus({ preventScroll: true });
    if (!first.current) scrollTo(0, 0);
    if (current) first.current = false;
  }, [title, current?.id]);
  const dialog = useSignal<"palette" | "shortcuts" | null>(null);
  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement | null;
      const isTyping = target?.matches("input:not([type=range], [type=checkbox]), textarea, select") ?? false;
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") dialog.value = "palette";
      else if (isTyping || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]"))
        return;
      else if (event.key === "/") {
        const field = document.querySelector<HTMLInputElement>("main .search");
        if (field) field.focus();
        else dialog.value = "palette";
      } else if (event.key === "?") dialog.value = "shortcuts";
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, []);
  const close = () => (dialog.value = null);
  return (
    <>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to content
      </button>
      <header class="top">
        <p class="brand">
          <img src="icon.svg" alt="" width="20" height="20" />
          gguf view
        </p>
        {all && current && <Models all={all} current={current} />}
        {current && (
          <button
            type="button"
            class="search-all"
            aria-keyshortcuts="Control+K"
            onClick={() => (dialog.value = "palette")}
          >
            Search <kbd aria-hidden="true">Ctrl K</kbd>
          </button>
        )}
        {all && current && <Views all={all} current={current} />}
        {current && <Foot current={current} onHelp={() => (dialog.value = "shortcuts")} />}
      </header>
      {dialog.value === "palette" && current && <Palette model={current} onClose={close} />}
      {dialog.value === "shortcuts" && <Shortcuts onClose={close} />}
      <main ref={main} id="main" tabIndex={-1} aria-label={title}>
        <Notices current={current} />
        {!all && !offline.value && <Loading />}
        {all && current && <View all={all} current={current} />}
        {current && <Changes key={current.id} model={current} />}
      </main>
    </>
  );
}

function View({ all, current }: { all: Model[]; current: Model }) {
  if (view.value === "compare") return <Compare all={all} />;
  const found = VIEWS.find(({ name }) => name === view.value) ?? VIEWS[0];
  const Show = (current.readable || found?.broken ? found : VIEWS[0])?.show ?? Overview;
  return <Show key={current.id} model={current} />;
}

function Models({ all, current }: { all: Model[]; current: Model }) {
  const details = `${bytes(current.bytes)}, ${plural(current.tensor_count ?? 0, "tensor")}${current.files.length > 1 ? `, ${plural(current.files.length, "file")}` : ""}`;
  return (
    <div class="models">
      {all.length > 1 ? (
        <select
          aria-label="Model"
          title={current.source}
          value={current.id}
          onChange={(event) =>
            navigate(link([event.currentTarget.value, view.value === "compare" ? "overview" : view.value]))
          }
        >
          {all.map((entry) => (
            <option key={entry.id} value={entry.id}>
              {modelName(entry)}
            </option>
          ))}
        </select>
      ) : (
        <p class="models-name" title={current.source}>
          {modelName(current)}
        </p>
      )}
      <p class="models-about faint">{details}</p>
    </div>
  );
}

function Views({ all, current }: { all: Model[]; current: Model }) {
  const shown = VIEWS.filter((entry) => current.readable || entry.broken);
  const here = VIEWS.some(({ name }) => name === view.value) || view.value === "compare" ? view.value : "overview";
  const other = all.find((entry) => entry.id !== current.id && entry.readable);
  const staged = countOf(editsOf(current.id));
  const pair = current.original !== null ? [current.original, current.id] : [current.id, other?.id ?? 0];
  return (
    <nav aria-label="Views">
      <ul class="views">
        {shown.map(({ name, title }) => (
          <li key={name}>
            <a
              href={link([current.id, name])}
              aria-current={here === name ? "page" : undefined}
              onPointerEnter={() => preloadView(name)}
            >
              {title}
              {name === "metadata" && staged > 0 && <span class="badge edited">{staged}</span>}
            </a>
          </li>
        ))}
        {other && current.readable && (
          <li>
            <a href={link(["compare", ...pair])} aria-current={here === "compare" ? "page" : undefined}>
              Compare
            </a>
          </li>
        )}
      </ul>
    </nav>
  );
}

function Foot({ current, onHelp }: { current: Model; onHelp: () => void }) {
  const fetched = traffic.value[current.id];
  return (
    <div class="foot faint">
      {current.remote && (
        <p
          class="traffic"
          title={
            fetched?.cache
              ? `cache on disk: ${bytes(fetched.cache.disk_bytes)} of ${bytes(fetched.cache.disk_limit)}`
              : undefined
          }
        >
          <span class="traffic-bytes">{fetched ? bytes(fetched.fetched_bytes) : "…"}</span> fetched of{" "}
          {bytes(current.bytes)}
          {fetched && <span class="traffic-requests"> in {plural(fetched.requests, "request")}</span>}
          {fetched?.cache && <span class="traffic-cache">, {bytes(fetched.cache.disk_bytes)} cached</span>}
        </p>
      )}
      {!current.remote && <p class="traffic">local file</p>}
      <div class="foot-tools">
        <select
          aria-label="Color scheme"
          value={theme.value}
          onChange={(event) => setTheme(event.currentTarget.value as Theme)}
        >
          <option value="system">system colors</option>
          <option value="light">light</option>
          <option value="dark">dark</option>
        </select>
        <button type="button" aria-label="Keyboard help" aria-keyshortcuts="?" onClick={onHelp}>
          ?
        </button>
      </div>
    </div>
  );
}

function Notices({ current }: { current: Model | undefined }) {
  const failed = useSignal("");
  const state = current ? changed.value[current.id] : undefined;
  const silent = current ? silence(traffic.value[current.id]) : null;
  const reopen = (id: number) => {
    failed.value = "";
    reload(id).catch((error: unknown) => {
      failed.value = String(error instanceof Error ? error.message : error);
    });
  };
  return (
    <div aria-live="assertive">
      {offline.value && (
        <div class="notice">
          <p>
            <strong>The server has stopped or cannot be reached.</strong> The page shows earlier data. Start{" "}
            <code>gguf view</code> again and open the address that it prints.
          </p>
        </div>
      )}
      {!offline.value && silent && (
        <div class="notice">
          <p>
            <strong>The remote server does not answer.</strong> {silent}
          </p>
        </div>
      )}
      {!offline.value && current?.damaged && <Damage model={current} />}
      {!offline.value && current && state && (
        <div class="notice">
          <p>
            <strong>
              {state.files
                .filter((file) => file.state !== "same")
                .map((file) => `${fileName(file.name)} ${file.state === "gone" ? "was deleted" : "has changed"}`)
                .join(", ")}
            </strong>{" "}
            since it was opened. The page may be out of date.
          </p>
          <button type="button" onClick={() => reopen(current.id)}>
            Reload
          </button>
          {failed.value && <p>{failed.value}</p>}
        </div>
      )}
    </div>
  );
}

/** Says what is wrong with a damaged file that is shown. */
function Damage({ model }: { model: Model }) {
  const name = model.error?.key ?? model.error?.tensor;
  return (
    <div class="notice">
      <p>
        <strong>{model.truncated ? "The file is truncated:" : "The file is damaged:"}</strong>{" "}
        {name && <code>{name.slice(0, 120)}: </code>}
        {model.error?.message}. {extent(model)}{" "}
        {view.value !== "overview" && <a href={link([model.id, "overview"])}>All findings</a>}
      </p>
    </div>
  );
}

/** Says how much of a damaged file is shown. */
function extent(model: Model): string {
  const tensors = model.tensor_count ?? 0;
  if (!model.header_complete)
    return `It ends within its header: only the keys ${tensors > 0 ? `and ${plural(tensors, "tensor")} ` : ""}before the end are shown.`;
  if (model.truncated)
    return "Its header is intact, so metadata, tokenizer and graph are complete; tensors whose data is missing are marked.";
  return "Everything that can be read is shown; damaged keys and tensors are marked.";
}

/** Seconds without a byte after which a remote server is said to be silent. */
const SILENCE = 2;

/** Says that a remote server fails or is silent, or returns null. */
function silence(traffic: Traffic | undefined): string | null {
  if (!traffic) return null;
  const { retry, waiting_seconds: waiting } = traffic;
  if (retry) return `${retry.reason} (attempt ${retry.failures} of ${retry.attempts} failed; retrying).`;
  return waiting !== null && waiting >= SILENCE ? `Waiting for ${Math.floor(waiting)} s.` : null;
}
