import type { Worker } from 'node:worker_threads';
import { features } from '../../features.ts';
import type { ListsOfFeatures, LocalLists } from '../../service/tables.ts';
import { StorageError } from '../../service/ports.ts';
import type { LongRead, LongReads } from '../../service/long-read.ts';
import { startWorker, errorOf, type OutcomeMessage } from './worker.ts';

/** A read of a table by the name of its method, or a long read of a feature. */
export type ReadRequest =
  | { readonly table: keyof LocalLists; readonly method: string; readonly args: readonly unknown[] }
  | { readonly longRead: keyof LongReads; readonly asked: unknown };

/** A read and its result, each as JSON. Results may come in another order. */
export type ReadMessage = { readonly id: number; readonly request: ReadRequest };
export type ReadResponse = { readonly id: number; readonly outcome: OutcomeMessage };

/** After this time without a read, the thread ends to free memory, in ms. */
const idleMs = 30_000;

type Waiting = Pick<PromiseWithResolvers<unknown>, 'resolve' | 'reject'>;

/** Runs long reads in a thread, which starts with the first read. The server thread answers other requests meanwhile. */
export class ReadingThread implements AsyncDisposable {
  readonly #startThread: () => Worker;
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | null = null;
  #lastId = 0;
  #idle: NodeJS.Timeout | undefined;

  constructor(
    databasePath: string,
    startThread: () => Worker = () => startWorker('reading', { databasePath }),
  ) {
    this.#startThread = startThread;
  }

  /** The lists of the store. */
  readonly lists: LocalLists = {
    accounts: this.#table('accounts', ['list', 'count']),
    products: this.#table('products', ['list', 'count']),
    collections: this.#table('collections', ['list', 'count']),
    purchases: this.#table('purchases', ['list', 'count']),
    licenses: this.#table('licenses', ['list', 'count']),
    coupons: this.#table('coupons', ['list', 'count']),
    redemptions: this.#table('redemptions', ['listOf']),
    tokens: this.#table('tokens', ['list', 'count']),
    audit: this.#table('audit', ['list', 'count']),
    mirror: this.#table('mirror', ['list', 'count']),
    snapshots: this.#table('snapshots', ['list', 'count']),
    operations: this.#table('operations', ['list', 'openOf', 'countOpenOf', 'found', 'countFound']),
    ...this.#listsOfFeatures(),
  };

  /** Runs a long read of a feature. The compiler does not know what the worker answers. */
  readonly longRead: LongRead = (name, asked) => this.#read({ longRead: name, asked }) as Promise<never>;

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#idle);
    await this.#end(new Error('the process ends'));
  }

  /** The compiler cannot see that the features of the list have all the lists that features add to the type. */
  #listsOfFeatures(): Pick<LocalLists, keyof ListsOfFeatures> {
    const names = features.flatMap(({ lists }) => lists ?? []);
    return Object.fromEntries(
      names.map((name) => [name, this.#table(name, ['list', 'count'])]),
    ) as unknown as Pick<LocalLists, keyof ListsOfFeatures>;
  }

  /** The methods of a table. The compiler does not know that the table in the worker has the same methods. */
  #table<Name extends keyof LocalLists>(
    table: Name,
    methods: readonly (keyof LocalLists[Name] & string)[],
  ): LocalLists[Name] {
    const entries = methods.map((method) => [
      method,
      (...args: readonly unknown[]) => this.#read({ table, method, args }),
    ]);
    return Object.fromEntries(entries) as LocalLists[Name];
  }

  async #read(request: ReadRequest): Promise<unknown> {
    clearTimeout(this.#idle);
    const worker = (this.#worker ??= this.#start());
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const id = (this.#lastId += 1);
    this.#waiting.set(id, { resolve, reject });
    worker.postMessage(JSON.stringify({ id, request } satisfies ReadMessage));
    return await promise;
  }

  #start(): Worker {
    const worker = this.#startThread();
    const lose = (cause: unknown): void => {
      if (this.#worker === worker) void this.#end(cause);
    };
    worker.on('error', lose);
    worker.on('exit', (code) => lose(new Error(`the reading thread ended with ${code}`)));
    worker.on('message', (text: string) => this.#settle(JSON.parse(text) as ReadResponse));
    return worker;
  }

  #settle({ id, outcome }: ReadResponse): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if ('result' in outcome) waiting?.resolve(outcome.result);
    else waiting?.reject(errorOf(outcome));
    if (this.#waiting.size > 0) return;
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => void this.#end(null), idleMs).unref();
  }

  /** Ends the thread. Waiting reads are rejected. */
  async #end(cause: unknown): Promise<void> {
    const worker = this.#worker;
    this.#worker = null;
    for (const { reject } of this.#waiting.values()) reject(new StorageError('unreadable', cause));
    this.#waiting.clear();
    await worker?.terminate();
  }
}
