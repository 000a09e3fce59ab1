import type { ComponentChildren } from 'preact';
import { goTo, hrefTo } from '../router.ts';
import { fieldText } from './action.tsx';

/**
 * A form whose fields are kept in the address, so that a filter survives a reload and can be sent to a colleague.
 * `names` are the names of the fields.
 */
export function FilterForm({
  path,
  query,
  names,
  children,
}: {
  path: readonly string[];
  query: URLSearchParams;
  names: readonly string[];
  children: ComponentChildren;
}) {
  const apply = (event: Event): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const kept = [...query].filter(([name]) => !names.includes(name));
    goTo(path, Object.fromEntries([...kept, ...names.map((name) => [name, fieldText(form, name)])]));
  };
  const isFiltered = names.some((name) => query.has(name));
  return (
    // The key resets the fields when the address changes.
    <form class="filters" role="search" onSubmit={apply} key={query.toString()}>
      {children}
      <button type="submit">Filter</button>
      {isFiltered && (
        <a
          class="button"
          href={hrefTo(path, Object.fromEntries([...query].filter(([name]) => !names.includes(name))))}
        >
          Clear
        </a>
      )}
    </form>
  );
}
