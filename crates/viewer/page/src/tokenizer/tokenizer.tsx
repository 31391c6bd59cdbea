// The vocabulary, what it makes of a text, its merges, and the chat template.
import { useDocument } from "../api/resource";
import type { TokenizerFacts } from "../api/token-types";
import type { Model } from "../api/types";
import { plural, whole } from "../format";
import { choose } from "../route";
import { Shown } from "../ui/notice";
import { Tabs } from "../ui/tabs";
import { chosen, type ViewProps } from "../ui/view";
import { Merges } from "./merges";
import { TemplateView } from "./template";
import { Tokens } from "./tokens";
import { Try } from "./try";

export function TokenizerView({ model }: ViewProps) {
  const facts = useDocument<TokenizerFacts>(`models/${model.id}/tokenizer`);
  return (
    <>
      <div class="view-head">
        <h1>Tokenizer</h1>
      </div>
      <Shown
        of={facts}
        show={(value) => <Known model={model} facts={value} />}
        waiting={<div class="split-room" role="status" aria-label="Loading" />}
      />
    </>
  );
}

function Known({ model, facts }: { model: Model; facts: TokenizerFacts }) {
  const error = typeof facts.error === "string" ? facts.error : (facts.error?.message ?? null);
  const tabs = [
    { name: "tokens", title: "Tokens", show: () => <Tokens model={model} facts={facts} /> },
    ...(error === null ? [{ name: "try", title: "Try a text", show: () => <Try model={model} /> }] : []),
    ...(facts.merges ? [{ name: "merges", title: "Merges", show: () => <Merges model={model} /> }] : []),
    { name: "template", title: "Chat template", show: () => <TemplateView model={model} /> },
  ];
  return (
    <>
      <p class="detail-about">
        <span>{facts.model ?? "kind not named"}</span>
        {facts.pre && <span>words cut as {facts.pre}</span>}
        <span>{plural(facts.tokens, "token")}</span>
        {facts.merges !== null && facts.merges > 0 && <span>{whole(facts.merges)} merges</span>}
        {facts.has_scores && <span>with scores</span>}
      </p>
      {error !== null && (
        <p class="problem" role="alert">
          This tokenizer does not work: {error}
        </p>
      )}
      <Tabs
        label="Sides of the tokenizer"
        tabs={tabs}
        chosen={chosen("tab") || "tokens"}
        onChoose={(tab) => choose({ tab, search: null })}
      />
    </>
  );
}
