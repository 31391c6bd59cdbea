// What is said where something cannot be shown, is on its way, or is wrong.
import type { ComponentChildren } from "preact";
import type { Resource } from "../api/resource";
import type { Failure } from "../api/request";

/** Why something cannot be shown, and what to do. */
export function Problem({ failure }: { failure: Failure }) {
  return (
    <div class="problem" role="alert">
      <p class="problem-what">{failure.message}</p>
      {failure.help && <p>{failure.help}</p>}
      <p class="faint">
        <code>{failure.code}</code>
      </p>
    </div>
  );
}

/** What `show` makes of a document, or what is known instead. An older one stays until the next is there. */
export function Shown<T>({
  of,
  show,
  waiting,
}: {
  of: Resource<T>;
  show: (value: T) => ComponentChildren;
  waiting?: ComponentChildren;
}) {
  if (of.failure) return <Problem failure={of.failure} />;
  if (of.value === null) return <>{waiting ?? <Waiting />}</>;
  return (
    <div class={of.loading ? "shown stale" : "shown"} aria-busy={of.loading}>
      {show(of.value)}
    </div>
  );
}

/** Room for what is on its way. */
export function Waiting({ what = "Loading" }: { what?: string }) {
  return (
    <p class="waiting" role="status">
      {what}
      <span aria-hidden="true"> …</span>
    </p>
  );
}

/** What stands where a list is empty. */
export function Nothing({ children }: { children: ComponentChildren }) {
  return <p class="nothing">{children}</p>;
}

/** A part of a view with its heading. */
export function Section({
  title,
  aside,
  id,
  children,
}: {
  title: string;
  aside?: ComponentChildren;
  id: string;
  children: ComponentChildren;
}) {
  return (
    <section class="section" aria-labelledby={id}>
      <div class="section-head">
        <h2 id={id}>{title}</h2>
        {aside}
      </div>
      {children}
    </section>
  );
}
