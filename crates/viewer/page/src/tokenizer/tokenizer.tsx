// Tokenizer view: vocabulary, tokenization, merges, chat template.
import { useDocument } from "../api/resource";
import type { TokenizerFacts } from "../api/token-types";
import type { Model } from "../api/types";
import { plural, whole } from "../format";
import { setParams } from "../route";
import { Loaded } from "../ui/states";
import { Tabs } from "../ui/tabs";
import { param, type ViewProps } from "../ui/view";
import { Merges } from "./merges";
import { TemplateView } from "./template";
import { Tokens } from "./tokens";
import { TokenizeView } from "./tokenize";

export function TokenizerView({ model }: ViewProps) {
  const facts = useDocument<TokenizerFacts>(`models/${model.id}/tokenizer`);
  return (
    <>
      <div class="view-head">
        <h1>Tokenizer</h1>
      </div>
      <Loaded
        resource={facts}
        render={(value) => <TokenizerTabs model={model} facts={value} />}
        fallback={<div class="split-room" role="status" aria-label="Loading" />}
      />
    </>
  );
}

function TokenizerTabs({ model, facts }: { model: Model; facts: TokenizerFacts }) {
  const error = typeof facts.error === "string" ? facts.error : (facts.error?.message ?? null);
  const tabs = [
    { name: "tokens", title: "Tokens", show: () => <Tokens model={model} facts={facts} /> },
    ...(error === null ? [{ name: "try", title: "Tokenize", show: () => <TokenizeView model={model} /> }] : []),
    ...(facts.merges ? [{ name: "merges", title: "Merges", show: () => <Merges model={model} /> }] : []),
    { name: "template", title: "Chat template", show: () => <TemplateView model={model} /> },
  ];
  return (
    <>
      <p class="detail-about">
        <span>{facts.model ?? "unknown model"}</span>
        {facts.pre && <span>pre-tokenizer {facts.pre}</span>}
        <span>{plural(facts.tokens, "token")}</span>
        {facts.merges !== null && facts.merges > 0 && <span>{whole(facts.merges)} merges</span>}
        {facts.has_scores && <span>has scores</span>}
      </p>
      {error !== null && (
        <p class="problem" role="alert">
          The tokenizer cannot be loaded: {error}
        </p>
      )}
      <Tabs
        label="Tokenizer views"
        tabs={tabs}
        chosen={param("tab") || "tokens"}
        onChoose={(tab) => setParams({ tab, search: null })}
      />
    </>
  );
}
