import type { Clock, Log } from '../../../service/ports.ts';
import type { AuthorityReader } from '../../../service/tables.ts';
import type { Announcer } from '../../../service/writer.ts';

/** How often the history is read, in ms: other nodes announce only some changes. A wait ends at most this much too late. */
const tickMs = 1_000;
/** The shortest time between two reads of the history, in ms. */
const minGapMs = 50;
/** How many followers are woken up in one turn of the event loop. */
const wokenPerTurn = 100;

/** `changed`: a followed license has changed. `over`: the time is over, or the caller has left. */
export type End = 'changed' | 'over';

export type Wait = { readonly end: Promise<End>; cancel(): void };

type Waiting = { until: number; end: (reason: End) => void };

type Parts = {
  reader: Pick<AuthorityReader, 'followers'>;
  changes: Pick<Announcer, 'subscribe'>;
  clock: Pick<Clock, 'monotonic' | 'sleep'>;
  log: Pick<Log, 'warn'>;
  /** Resolves in another turn of the event loop. */
  nextTurn: () => Promise<void>;
};

/**
 * The requests that wait for a change of a followed license, by the number of their follower. They keep no license keys: one
 * reader of the history finds the followers of a changed license.
 */
export class WaitingFollowers {
  readonly #parts: Parts;
  readonly #ofFollower = new Map<number, Set<Waiting>>();
  #count = 0;
  /** Where the reader of the history is; null: nobody waits. */
  #position: string | null = null;
  #wake: (() => void) | null = null;
  #isDirty = false;
  readonly #stopped = new AbortController();

  constructor(parts: Parts) {
    this.#parts = parts;
    parts.changes.subscribe((changes) => {
      if (this.#count === 0) return;
      if (changes.every((change) => change === 'credentials')) return;
      this.#isDirty = true;
      this.#wake?.();
    });
  }

  get count(): number {
    return this.#count;
  }

  has(follower: number): boolean {
    return this.#ofFollower.has(follower);
  }

  /** Begin the wait before the licenses of the follower are read: each change after that read ends the wait. */
  async begin(follower: number, { forMs, signal }: { forMs: number; signal: AbortSignal }): Promise<Wait> {
    const ended = Promise.withResolvers<End>();
    const leave = (): void => waiting.end('over');
    let isOver = false;
    const waiting: Waiting = {
      until: this.#parts.clock.monotonic() + forMs,
      end: (reason) => {
        if (isOver) return;
        isOver = true;
        signal.removeEventListener('abort', leave);
        this.#remove(follower, waiting);
        ended.resolve(reason);
      },
    };
    this.#add(follower, waiting);
    signal.addEventListener('abort', leave);
    if (signal.aborted || this.#stopped.signal.aborted) waiting.end('over');
    else await this.#start();
    return { end: ended.promise, cancel: leave };
  }

  /** Ends all waits, now and later, because the process stops. */
  stop(): void {
    this.#stopped.abort();
    for (const waiting of this.#all()) waiting.end('over');
  }

  #add(follower: number, waiting: Waiting): void {
    const others = this.#ofFollower.get(follower);
    if (others === undefined) this.#ofFollower.set(follower, new Set([waiting]));
    else others.add(waiting);
    this.#count += 1;
  }

  #remove(follower: number, waiting: Waiting): void {
    const others = this.#ofFollower.get(follower);
    others?.delete(waiting);
    if (others?.size === 0) this.#ofFollower.delete(follower);
    this.#count -= 1;
  }

  async #start(): Promise<void> {
    if (this.#position !== null) return;
    const { position } = await this.#parts.reader.followers.ofChanges(null);
    // Another request may have started it meanwhile; an earlier position loses nothing.
    if (this.#position !== null) return;
    this.#position = position;
    void this.#run();
  }

  /** Runs as long as there are waits. */
  async #run(): Promise<void> {
    const { clock } = this.#parts;
    const { signal } = this.#stopped;
    while (this.#count > 0 && !signal.aborted) {
      await this.#pause();
      if (signal.aborted) break;
      await this.#readHistory();
      const now = clock.monotonic();
      await this.#end(
        [...this.#all()].filter(({ until }) => until <= now),
        'over',
      );
    }
    this.#position = null;
  }

  /** Waits for the next tick or announcement. */
  async #pause(): Promise<void> {
    const { clock } = this.#parts;
    const { signal: stopped } = this.#stopped;
    await clock.sleep(minGapMs, stopped).catch(() => undefined);
    if (this.#isDirty || stopped.aborted) return;
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    await clock.sleep(tickMs - minGapMs, AbortSignal.any([woken.signal, stopped])).catch(() => undefined);
    this.#wake = null;
  }

  async #readHistory(): Promise<void> {
    this.#isDirty = false;
    try {
      for (let hasMore = true; hasMore && this.#count > 0;) {
        const read = await this.#parts.reader.followers.ofChanges(this.#position);
        this.#position = read.position;
        hasMore = read.hasMore;
        await this.#end(
          read.followers.flatMap((follower) => [...(this.#ofFollower.get(follower) ?? [])]),
          'changed',
        );
      }
    } catch (error) {
      // The next tick tries again.
      this.#parts.log.warn({ err: error }, 'the changes for waiting agents cannot be read');
    }
  }

  /** Ends waits in groups, because each of them reads the store. */
  async #end(waits: readonly Waiting[], reason: End): Promise<void> {
    for (const [index, waiting] of waits.entries()) {
      if (index > 0 && index % wokenPerTurn === 0) await this.#parts.nextTurn();
      waiting.end(reason);
    }
  }

  *#all(): Iterable<Waiting> {
    for (const waits of this.#ofFollower.values()) yield* waits;
  }
}
