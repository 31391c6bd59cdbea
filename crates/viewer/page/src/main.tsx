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
import { App } from "./app";

const root = document.getElementById("app");
if (root) render(<App />, root);
void ask().catch(() => undefined);
watch();
