// List of tensors with filters and sort order.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { Tensor } from "../api/tensor-types";
import type { Model } from "../api/types";
import { bytes, plural, shape, visible } from "../format";
import { setParams, navigate, link, route } from "../route";
import { Search } from "../ui/search";
import { bits, typeColour } from "../ui/type-colour";
import { VirtualList } from "../ui/virtual-list";
import { filtered, type Order, ORDERS, type Row, rows } from "./tree";

export function TensorList({ tensors, model, selected }: { tensors: Tensor[]; model: Model; selected: number | null }) {
  const { query } = route.value;
  const search = query.get("search") ?? "";
  const type = query.get("type") ?? "";
  const sort = query.get("sort") ?? "tree";
  const order = ORDERS.find(({ name }) => name === sort)?.name ?? "tree";
  const toggled = useSignal<ReadonlySet<string>>(new Set(initiallyOpen(tensors, selected)));
  // A tensor that was reached by a link is shown in the tree.
  useEffect(() => {
    const closed = initiallyOpen(tensors, selected).filter((path) => !toggled.value.has(path));
    if (selected !== null && closed.length > 0) toggled.value = new Set([...toggled.value, ...closed]);
  }, [selected, tensors]);
  const types = useMemo(() => [...new Set(tensors.map((tensor) => tensor.type))].sort(), [tensors]);
  const found = useMemo(() => filtered(tensors, search, type), [tensors, search, type]);
  const searching = search !== "" || type !== "";
  const list = useMemo(() => rows(found, order, toggled.value, searching), [found, order, toggled.value, searching]);
  const at = selected === null ? -1 : list.findIndex((row) => row.tensor?.n === selected);

  function toggle(row: Row): void {
    const next = new Set(toggled.value);
    if (!next.delete(row.path)) next.add(row.path);
    toggled.value = next;
  }
  function pick(index: number): void {
    const row = list[index];
    if (row?.tensor)
      navigate(
        link([model.id, "tensors", row.tensor.n], { search, type, sort: query.get("sort"), tab: query.get("tab") }),
      );
    else if (row && !searching) toggle(row);
  }
  function key(name: string, index: number): boolean {
    const row = list[index];
    if (!row || row.tensor || searching) return false;
    if ((name === "ArrowRight" && !row.open) || (name === "ArrowLeft" && row.open)) {
      toggle(row);
      return true;
    }
    return false;
  }

  return (
    <>
      <Search label="Filter by name" value={search} onSearch={(search) => setParams({ search })} />
      <div class="list-choices">
        <select aria-label="Type" value={type} onChange={(event) => setParams({ type: event.currentTarget.value })}>
          <option value="">all types</option>
          {types.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
        <select
          aria-label="Sort order"
          value={order}
          onChange={(event) =>
            setParams({ sort: event.currentTarget.value === "tree" ? null : event.currentTarget.value })
          }
        >
          {ORDERS.map(({ name, title }) => (
            <option key={name} value={name}>
              {title}
            </option>
          ))}
        </select>
      </div>
      <p class="list-about faint" role="status">
        {searching ? `${found.length} of ${plural(tensors.length, "tensor")}` : plural(tensors.length, "tensor")},{" "}
        {bytes(found.reduce((sum, tensor) => sum + (tensor.bytes ?? 0), 0))}
      </p>
      {found.length === 0 && (
        <p class="nothing">
          No tensor fits.{" "}
          <button type="button" onClick={() => setParams({ search: null, type: null })}>
            Clear filter
          </button>
        </p>
      )}
      <VirtualList
        class="tensor-rows"
        label="Tensors"
        role={order === "tree" ? "treegrid" : "grid"}
        count={list.length}
        height={34}
        selected={at}
        reveal={at}
        attributes={(index) => attributes(list[index], order)}
        onChoose={pick}
        onKey={key}
        render={(index) => <RowCells row={list[index]} />}
      />
    </>
  );
}

/** Returns the layer that is initially open: that of the selected tensor, or the first. */
function initiallyOpen(tensors: Tensor[], selected: number | null): string[] {
  const tensor = selected === null ? tensors.find((tensor) => tensor.block !== null) : tensors[selected];
  if (!tensor || tensor.block === null) return [];
  return [tensor.name.slice(0, tensor.name.length - tensor.kind.length).replace(/\.$/, "")];
}

function attributes(row: Row | undefined, order: Order): Record<string, string | number | boolean | undefined> {
  if (!row || order !== "tree") return {};
  return { "aria-level": row.level, "aria-expanded": row.tensor ? undefined : row.open };
}

function RowCells({ row }: { row: Row | undefined }) {
  if (!row) return null;
  const { tensor } = row;
  return (
    <>
      <span
        role="gridcell"
        class={`tensor-name level-${row.level}${tensor ? "" : " branch"}`}
        title={tensor ? `${tensor.name} ${shape(tensor.shape)}` : undefined}
      >
        {!tensor && <span class={`twist${row.open ? " open" : ""}`} aria-hidden="true" />}
        <span class="tensor-text">{visible(row.name)}</span>
        {!tensor && <span class="faint"> {row.tensors}</span>}
        {row.missing ? (
          <span class="badge error" title="The file is truncated: data is missing">
            cut
          </span>
        ) : (
          row.damage !== null && (
            <span class="badge error" title={row.damage}>
              damaged
            </span>
          )
        )}
      </span>
      <span role="gridcell" class="tensor-type">
        {tensor && (
          <>
            <span class="dot" style={{ background: typeColour(bits(tensor)) }} aria-hidden="true" />
            {tensor.type}
          </>
        )}
      </span>
      <span role="gridcell" class="number">
        {tensor && tensor.bytes === null ? "?" : bytes(row.bytes)}
      </span>
    </>
  );
}
