// Loading, error and empty states, and sections.
import type { ComponentChildren } from "preact";
import type { Resource } from "../api/resource";
import type { ApiError } from "../api/request";
import { wordsOf } from "./error-words";

/** An error with its help text and code. */
export function ErrorMessage({ failure }: { failure: ApiError }) {
  const { message, help } = wordsOf(failure);
  return (
    <div class="problem" role="alert">
      <p class="problem-what">
        {[failure.detail.key, failure.detail.tensor].map(
          (name) =>
            typeof name === "string" && !message.includes(name) && <code key={name}>{name.slice(0, 120)}: </code>,
        )}
        {message}
      </p>
      {help && <p>{help}</p>}
      <p class="faint">
        <code>{failure.code}</code>
      </p>
    </div>
  );
}

/** Renders a resource once it is loaded. The previous value stays while a newer one is loading. */
export function Loaded<T>({
  resource,
  render,
  fallback,
}: {
  resource: Resource<T>;
  render: (value: T) => ComponentChildren;
  fallback?: ComponentChildren;
}) {
  if (resource.failure) return <ErrorMessage failure={resource.failure} />;
  if (resource.value === null) return <>{fallback ?? <Loading />}</>;
  return (
    <div class={resource.loading ? "shown stale" : "shown"} aria-busy={resource.loading}>
      {render(resource.value)}
    </div>
  );
}

/** Placeholder of content that is loading. */
export function Loading({ what = "Loading" }: { what?: string }) {
  return (
    <p class="waiting" role="status">
      {what}
      <span aria-hidden="true"> …</span>
    </p>
  );
}

/** Placeholder of an empty list. */
export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="nothing">{children}</p>;
}

/** A section with a heading. */
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
