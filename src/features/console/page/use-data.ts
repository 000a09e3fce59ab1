import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { type ApiError, asApiError, call, nextOf } from './api.ts';
import { useSession } from './session.ts';

export type Loaded<Data> = {
  /** Null: not read yet. It stays while the daemon does not answer. */
  readonly data: Data | null;
  readonly error: ApiError | null;
  /** The first read, or a read after `reload`, has not ended. */
  readonly isReading: boolean;
  readonly reload: () => void;
};

type State<Data> = { path: string | null; round: number; data: Data | null; error: ApiError | null };

/**
 * Reads `path` and returns the member `data` of the answer.
 *
 * With `everyMs`, it reads again while the page is visible, with the ETag of the answer before.
 */
export function useData<Data>(path: string | null, everyMs: number | null = null): Loaded<Data> {
  const [state, setState] = useState<State<Data>>({ path, round: -1, data: null, error: null });
  const [round, setRound] = useState(0);
  const token = useSession()?.token;
  const reload = useCallback(() => setRound((before) => before + 1), []);
  useEffect(() => {
    // What was read stays until a person has signed in again.
    if (path === null || token === undefined) return undefined;
    return readRepeatedly<Data>(path, everyMs, (read) =>
      // The data stays while the daemon does not answer.
      setState((before) => ({
        path,
        round,
        data: before.path === path ? before.data : null,
        error: null,
        ...read,
      })),
    );
  }, [path, everyMs, round, token]);
  // An answer about another path is not shown.
  const { data, error } = state.path === path ? state : { data: null, error: null };
  const isReading = path !== null && (state.path !== path || state.round !== round);
  return { data, error, isReading, reload };
}

type Read<Data> = { data?: Data; error?: ApiError };

/** Reads a path until the returned function is called. Without `everyMs`, it reads once. */
function readRepeatedly<Data>(
  path: string,
  everyMs: number | null,
  onRead: (read: Read<Data>) => void,
): () => void {
  const end = new AbortController();
  let etag: string | null = null;
  let timer: number | undefined;
  let isReading = false;
  const readOnce = async (): Promise<Read<Data>> => {
    const headers = etag === null ? {} : { 'If-None-Match': etag };
    const response = await call('GET', path, { headers, signal: end.signal });
    if (response.status === 304) return {};
    etag = response.headers.get('ETag');
    return (await response.json()) as { data: Data };
  };
  const read = async (): Promise<void> => {
    isReading = true;
    const result = await readOnce().catch((error: unknown) => ({ error: asApiError(error) }));
    isReading = false;
    if (end.signal.aborted) return;
    onRead(result);
    if (everyMs !== null) timer = window.setTimeout(readIfVisible, everyMs);
  };
  const readIfVisible = (): void => {
    timer = undefined;
    if (document.visibilityState === 'visible') void read();
  };
  const onVisible = (): void => {
    if (everyMs !== null && timer === undefined && !isReading) readIfVisible();
  };
  document.addEventListener('visibilitychange', onVisible);
  void read();
  return () => {
    end.abort();
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', onVisible);
  };
}

export type Pages<Item> = {
  /** Null: not read yet. */
  readonly items: readonly Item[] | null;
  readonly total: number | null;
  readonly error: ApiError | null;
  /** Reads the next page; null: there is none. */
  readonly more: (() => void) | null;
  readonly reload: () => void;
};

type PageState<Item> = {
  items: Item[] | null;
  total: number | null;
  next: string | null;
  error: ApiError | null;
};

const nothing = { items: null, total: null, next: null, error: null };

/** Reads a list of the daemon page by page; `member` is its name in the answer. */
export function usePages<Item>(path: string | null, member: string): Pages<Item> {
  const [state, setState] = useState<PageState<Item> & { path: string | null }>({ path, ...nothing });
  const [round, setRound] = useState(0);
  const latest = useRef(0);
  const token = useSession()?.token;
  const read = useCallback(
    /** `from`: the page after what is shown; null: the first page. */
    async (from: string | null): Promise<void> => {
      if (path === null || token === undefined) return;
      if (from === null) latest.current += 1;
      const turn = latest.current;
      // The answer may be late: a later one about the first page, or the same next page, may be shown already.
      const update = (change: (shown: PageState<Item>) => Partial<PageState<Item>>): void =>
        setState((old) => {
          const shown = old.path === path ? old : nothing;
          if (from === null ? turn !== latest.current : from !== shown.next) return old;
          return { ...shown, error: null, ...change(shown), path };
        });
      try {
        const response = await call('GET', from ?? path);
        const { data } = (await response.json()) as { data: Record<string, Item[]> };
        const total = response.headers.get('X-Total-Count');
        update(({ items }) => ({
          items: [...(from === null ? [] : (items ?? [])), ...(data[member] ?? [])],
          total: total === null ? null : Number(total),
          next: nextOf(response),
        }));
      } catch (error) {
        update(() => ({ error: asApiError(error) }));
      }
    },
    [path, member, token],
  );
  useEffect(() => void read(null), [read, round]);
  const reload = useCallback(() => setRound((before) => before + 1), []);
  const { items, total, next, error } = state.path === path ? state : nothing;
  const more = next === null ? null : () => void read(next);
  return { items, total, error, more, reload };
}
