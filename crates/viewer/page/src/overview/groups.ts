// Tensors by what they do, told from their names.
import type { Tensor } from "../api/tensor-types";
import { bits } from "../ui/type-colour";

/** Tensors of one type. */
export interface Part {
  type: string;
  bits: number;
  bytes: number;
  tensors: number;
}

export interface Group {
  name: string;
  /** What finds them in the list of tensors. */
  search: string;
  bytes: number;
  parts: Part[];
}

/** In this order: the first that fits counts. */
const GROUPS: { name: string; fits: RegExp; search: string }[] = [
  { name: "norms", fits: /norm/, search: "norm" },
  { name: "experts", fits: /_exps|_shexp|ffn_gate_inp/, search: "exp" },
  { name: "embedding", fits: /embd|^token_types/, search: "embd" },
  { name: "output", fits: /^output|^cls/, search: "output" },
  { name: "attention", fits: /attn|cross/, search: "attn" },
  { name: "feed-forward", fits: /ffn|mlp/, search: "ffn" },
  { name: "state space", fits: /ssm|time_mix|channel_mix|conv/, search: "" },
];

/** The name of the group of a tensor. */
export function group(tensor: Tensor): string {
  return GROUPS.find(({ fits }) => fits.test(tensor.kind))?.name ?? "others";
}

/** The groups that there are, the largest first. */
export function groups(tensors: Tensor[]): Group[] {
  const found = new Map<string, Tensor[]>();
  for (const tensor of tensors) {
    const name = group(tensor);
    const members = found.get(name);
    if (members) members.push(tensor);
    else found.set(name, [tensor]);
  }
  const list = [...found].map(([name, members]) => {
    const types = parts(members);
    return {
      name,
      search: GROUPS.find((entry) => entry.name === name)?.search ?? "",
      bytes: types.reduce((sum, part) => sum + part.bytes, 0),
      parts: types,
    };
  });
  return list.sort((a, b) => b.bytes - a.bytes);
}

/** The types of tensors, the largest first. */
export function parts(tensors: Tensor[]): Part[] {
  const found = new Map<string, Part>();
  for (const tensor of tensors) {
    const part = found.get(tensor.type) ?? { type: tensor.type, bits: bits(tensor), bytes: 0, tensors: 0 };
    part.bytes += tensor.bytes ?? 0;
    part.tensors += 1;
    found.set(tensor.type, part);
  }
  return [...found.values()].sort((a, b) => b.bytes - a.bytes);
}
