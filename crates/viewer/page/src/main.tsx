// The page starts: asks what models there are, shows the view that the address names.
import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import "./style/base.css";
import "./style/frame.css";
import "./style/parts.css";
import "./style/heat.css";
import "./style/overview.css";
import "./style/metadata.css";
import "./style/tensors.css";
import "./style/file.css";
import "./style/tokenizer.css";
import "./style/graph.css";
import "./style/compare.css";
import { ask, watch } from "./api/health";
import { begin } from "./api/request";
import { App } from "./app";
import { model, view } from "./route";

/** For so long nothing is drawn while the server is asked what to draw, milliseconds. */
const PATIENCE = 100;

// A first picture without content would take as long as the one that counts.
const first = [ask().catch(() => undefined)];
if (view.value === "overview") first.push(begin(`models/${model.value}/summary`));
await Promise.race([Promise.all(first), new Promise((done) => setTimeout(done, PATIENCE))]);
const root = document.getElementById("app");
if (root) render(<App />, root);
watch();
