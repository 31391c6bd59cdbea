// Entry point: loads the list of models and renders the view in the URL fragment.
import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import "./style/base.css";
import "./style/frame.css";
import "./style/components.css";
import "./style/heatmap.css";
import "./style/overview.css";
import "./style/metadata.css";
import "./style/tensors.css";
import "./style/file.css";
import "./style/tokenizer.css";
import "./style/graph.css";
import "./style/compare.css";
import "./style/map.css";
import { loadModels, startPolling } from "./api/status";
import { prefetch } from "./api/request";
import { App, preloadView } from "./app";
import { isAnyStaged } from "./metadata/edits";
import { model, view } from "./route";

/** Milliseconds to wait for the first responses before rendering. */
const FIRST_RENDER_DELAY = 100;

preloadView(view.value);
// An empty first render would delay the one with content.
const first = [loadModels().catch(() => undefined)];
if (view.value === "overview") first.push(prefetch(`models/${model.value}/summary`));
await Promise.race([Promise.all(first), new Promise((done) => setTimeout(done, FIRST_RENDER_DELAY))]);
const root = document.getElementById("app");
if (root) render(<App />, root);
startPolling();
// A reload or a closed tab would lose staged edits.
addEventListener("beforeunload", (event) => {
  if (isAnyStaged()) event.preventDefault();
});
