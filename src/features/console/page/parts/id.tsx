/** How much of an id is always shown: the last group of a UUID. */
const endLength = 12;

/** An id on one line. Without room for it, it is shortened in its middle; the title, and a copy of it, have it whole. */
export function Id({ of }: { of: string }) {
  return (
    <code class="id" title={of}>
      <span>{of.slice(0, -endLength)}</span>
      {of.slice(-endLength)}
    </code>
  );
}
