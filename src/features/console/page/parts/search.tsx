import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { hrefTo } from '../router.ts';

/** The page of a list, and the filters in its address. */
export type Place = { readonly path: readonly string[]; readonly query: URLSearchParams };

const searchAfterMs = 200;
/** The server refuses a shorter text. */
const minSearched = 3;

/**
 * Searches while a person types; the key / leads here. The text is kept in the address, without an entry in the history for
 * each letter.
 */
export function Search({ path, query, name, label }: Place & { name: string; label: string }) {
  const search = query.get(name) ?? '';
  const [text, setText] = useState(search);
  const timer = useRef<number | undefined>(undefined);
  const applied = useRef(search);
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => {
    // A link changed the address. A search of this field is not written back: the person may have typed on.
    if (search !== applied.current) setText(search);
    applied.current = search;
  }, [search]);
  useEffect(() => () => clearTimeout(timer.current), []);
  useSlash(field);
  const isShort = text.trim() !== '' && Array.from(text.trim()).length < minSearched;
  const apply = (value: string): void => {
    clearTimeout(timer.current);
    applied.current = value.trim();
    location.replace(hrefTo(path, { ...Object.fromEntries(query), [name]: applied.current }));
  };
  const onInput = (event: Event): void => {
    const { value } = event.currentTarget as HTMLInputElement;
    const { length } = Array.from(value.trim());
    setText(value);
    clearTimeout(timer.current);
    if (length === 0 || length >= minSearched)
      timer.current = window.setTimeout(() => apply(value), searchAfterMs);
  };
  const onSubmit = (event: Event): void => {
    event.preventDefault();
    if (!isShort) apply(text);
  };
  return (
    <form role="search" class="search" onSubmit={onSubmit}>
      <label for="search">{label}</label>
      <input
        ref={field}
        id="search"
        type="search"
        name={name}
        value={text}
        onInput={onInput}
        autocomplete="off"
        spellcheck={false}
        aria-describedby="search-hint"
        aria-keyshortcuts="/"
      />
      <p id="search-hint" class="quiet" role="status">
        {isShort ? `Type ${minSearched} characters or more.` : 'Press / to search.'}
      </p>
    </form>
  );
}

/** Leads the key / to a field. */
function useSlash(field: RefObject<HTMLInputElement>): void {
  useEffect(() => {
    const lead = (event: KeyboardEvent): void => {
      if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target))
        return;
      event.preventDefault();
      field.current?.select();
      field.current?.focus();
    };
    addEventListener('keydown', lead);
    return () => removeEventListener('keydown', lead);
  }, []);
}

/** Whether a person types into a field, or a dialog is open. */
function isTyping(target: EventTarget | null): boolean {
  return (
    document.querySelector('dialog[open]') !== null ||
    (target instanceof Element && target.closest('input, select, textarea') !== null)
  );
}
