import { useEffect, useState } from 'preact/hooks';

/** A page of the console: `#/outbox/ID?state=dead`. */
export type Route = { readonly path: readonly string[]; readonly query: URLSearchParams };

function readRoute(): Route {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?', 2);
  return {
    path: path
      .split('/')
      .filter((part) => part !== '')
      .map(decode),
    query: new URLSearchParams(query),
  };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function useRoute(): Route {
  const [route, setRoute] = useState(readRoute);
  useEffect(() => {
    const update = (): void => setRoute(readRoute());
    addEventListener('hashchange', update);
    return () => removeEventListener('hashchange', update);
  }, []);
  return route;
}

type Query = Readonly<Record<string, string | null | undefined>>;

/** The address of a page. Each part of the path is encoded. */
export function hrefTo(path: readonly string[], query: Query = {}): string {
  const given = Object.entries(query).filter((pair): pair is [string, string] => (pair[1] ?? '') !== '');
  const search = given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`;
  return `#/${path.map(encodeURIComponent).join('/')}${search}`;
}

export function goTo(path: readonly string[], query: Query = {}): void {
  location.hash = hrefTo(path, query);
}
