import type { ComponentChildren } from 'preact';
import { useLayoutEffect } from 'preact/hooks';

/** The heading of a page, with its actions. The heading gets the focus when the page opens. */
export function Heading({
  title,
  isCode = false,
  children,
}: {
  title: string;
  /** The title is a license key or a code. */
  isCode?: boolean;
  children?: ComponentChildren;
}) {
  useLayoutEffect(() => {
    document.title = `${title} – Latchkey`;
  }, [title]);
  return (
    <div class="heading">
      <h1 tabIndex={-1} class={isCode ? 'code' : undefined}>
        {title}
      </h1>
      <div class="actions">{children}</div>
    </div>
  );
}

export function Section({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="section">
      <h2>{title}</h2>
      {children}
    </section>
  );
}

/** A card with a title, and a state or a figure on its right. */
export function Card({
  title,
  side,
  children,
}: {
  title: string;
  side?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <section class="card">
      <div class="card-title">
        <h2>{title}</h2>
        {side}
      </div>
      {children}
    </section>
  );
}

/** Names and values. Entries that are null or false are left out. */
export function Fields({ entries }: { entries: Readonly<Record<string, ComponentChildren>> }) {
  return (
    <dl class="fields">
      {Object.entries(entries)
        .filter(([, value]) => value !== null && value !== undefined && value !== false)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
