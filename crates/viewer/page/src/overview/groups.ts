// Groups of tensors by function, derived from their names.
import type { Tensor } from "../api/tensor-types";
import { bits } from "../ui/type-colour";

/** Total of the tensors of one type. */
export interface TypeTotal {
  type: string;
  bits: number;
  bytes: number;
  tensors: number;
}

export interface Group {
  name: string;
  /** Search text that lists the group in the Tensors view. */
  search: string;
  bytes: number;
  parts: TypeTotal[];
}

/** The first group that matches applies. */
const GROUPS: { name: string; fits: RegExp; search: string }[] = [
  { name: "norms", fits: /norm/, search: "norm" },
  { name: "experts", fits: /_exps|_shexp|ffn_gate_inp/, search: "exp" },
  { name: "embedding", fits: /embd|^token_types/, search: "embd" },
  { name: "output", fits: /^output|^cls/, search: "output" },
  { name: "attention", fits: /attn|cross/, search: "attn" },
  { name: "feed-forward", fits: /ffn|mlp/, search: "ffn" },
  { name: "state space", fits: /ssm|time_mix|channel_mix|shortconv/, search: "" },
  { name: "convolution", fits: /conv/, search: "conv" },
];

/** Names of the parts of a model, by the prefix of their tensors. */
const PARTS: Record<string, string> = {
  enc: "encoder",
  dec: "decoder",
  v: "vision encoder",
  a: "audio encoder",
  mm: "multimodal projector",
};

/** Returns the part of a model that a layer belongs to, such as `decoder`; empty for the model itself. */
export function partOf(tensor: Tensor): string {
  const prefix = /^(.*?)\.?blk\.\d+\./.exec(tensor.name)?.[1] ?? "";
  return PARTS[prefix] ?? prefix;
}

/** Returns the group name of a tensor. */
export function group(tensor: Tensor): string {
  return GROUPS.find(({ fits }) => fits.test(tensor.kind))?.name ?? "other";
}

/** Returns the groups present, largest first. */
export function groups(tensors: Tensor[]): Group[] {
  const found = new Map<string, Tensor[]>();
  for (const tensor of tensors) {
    const name = group(tensor);
    const members = found.get(name);
    if (members) members.push(tensor);
    else found.set(name, [tensor]);
  }
  const list = [...found].map(([name, members]) => {
    const types = typeTotals(members);
    return {
      name,
      search: GROUPS.find((entry) => entry.name === name)?.search ?? "",
      bytes: types.reduce((sum, part) => sum + part.bytes, 0),
      parts: types,
    };
  });
  return list.sort((a, b) => b.bytes - a.bytes);
}

/** Returns the totals by tensor type, largest first. */
export function typeTotals(tensors: Tensor[]): TypeTotal[] {
  const found = new Map<string, TypeTotal>();
  for (const tensor of tensors) {
    const part = found.get(tensor.type) ?? { type: tensor.type, bits: bits(tensor), bytes: 0, tensors: 0 };
    part.bytes += tensor.bytes ?? 0;
    part.tensors += 1;
    found.set(tensor.type, part);
  }
  return [...found.values()].sort((a, b) => b.bytes - a.bytes);
}
