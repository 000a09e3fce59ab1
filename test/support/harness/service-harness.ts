import { deepStrictEqual, ok } from 'node:assert';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { License, LicenseTrigger } from '../../../src/domain/license.ts';
import {
  localState,
  type LocalState,
  type LicenseSnapshot,
  defaultFreshnessPolicy,
  type FreshnessPolicy,
} from '../../../src/domain/agent/license-snapshot.ts';
import type { QueueName, Operation } from '../../../src/domain/outbox/operation.ts';
import type { PlannedStep } from '../../../src/service/outbox/plan-step.ts';
import type { SyncPolicy } from '../../../src/service/outbox/queue.ts';
import type { Ambiguous, Applied, NotApplied, NotAppliedReason } from '../../../src/domain/outbox/outcome.ts';
import { type Result, isFailure } from '../../../src/domain/problem/problem.ts';
import type { ProblemCode } from '../../../src/domain/problem/problem-table.ts';
import type { Idempotency, Keyed, WriterContext } from '../../../src/service/ports.ts';
import type { Writer } from '../../../src/service/writer.ts';
import type { QueuedChange } from '../../../src/service/outbox/license-change.ts';
import type { RecordedResponse } from '../../../src/service/outbox/record-response.ts';
import type { RecordedRead } from '../../../src/service/outbox/record-read.ts';
import type { Transaction } from '../../../src/service/tables.ts';
import { runUseCase } from '../../../src/service/run.ts';
import { openWriting } from '../../../src/store/sqlite/connection.ts';
import { localWriter } from '../../../src/store/sqlite/commit.ts';
import { openStore } from '../../../src/store/sqlite/files/open.ts';
import { temporaryDirectory } from '../temporary.ts';

export const second = 1000;
export const minute: number = 60 * second;
export const hour: number = 60 * minute;
export const day: number = 24 * hour;
export const key = 'KEY-1';
export const productKey = 'press';

/** A store in a real file, a writer in this thread, and a manual clock. */
export class Harness implements AsyncDisposable {
  /** `Clock.now` and `Clock.monotonic` of the next command. */
  now: number = Date.UTC(2026, 0, 1);
  monotonic: number = Date.UTC(2026, 0, 1);
  /** The next number of the random source. */
  fraction = 0.5;
  /** Whether `history.keep` is above 0. */
  recordsHistory = true;
  readonly #directory: ReturnType<typeof temporaryDirectory> = temporaryDirectory();
  #open: { stack: DisposableStack; writer: Writer; transaction: Transaction };
  #made = 0;

  constructor() {
    this.#open = this.#reopened();
  }

  get writer(): Writer {
    return this.#open.writer;
  }

  /** The stored data, which tests only read. */
  get store(): Transaction {
    return this.#open.transaction;
  }

  /** Advances both clocks. */
  pass(ms: number): void {
    this.now += ms;
    this.monotonic += ms;
  }

  /** Ends the process as a crash does, and opens its store again. */
  reopen(): void {
    this.#open.stack.dispose();
    this.#open = this.#reopened();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#open.stack.dispose();
    await this.#directory[Symbol.asyncDispose]();
  }

  #reopened(): { stack: DisposableStack; writer: Writer; transaction: Transaction } {
    const stack = new DisposableStack();
    const { databasePath } = stack.use(openStore({ directory: join(this.#directory.path, 'state') }));
    const connection = stack.use(openWriting(databasePath));
    const context = (): WriterContext => this.#context();
    const writer = localWriter(connection, { run: runUseCase, isFailure, context });
    return { stack, writer, transaction: connection.transaction };
  }

  #context(): WriterContext {
    const next = (): number => {
      this.#made += 1;
      return this.#made;
    };
    return {
      now: this.now,
      monotonic: this.monotonic,
      random: {
        bytes: (count) => createHash('sha512').update(String(next())).digest().subarray(0, count),
        uuid: () => `id-${next()}`,
        fraction: () => this.fraction,
      },
      digest: (secret) => createHash('sha256').update(secret).digest('hex'),
      recordsHistory: this.recordsHistory,
    };
  }
}

/** The value of a successful result. */
export function valueOf<Value>(result: Result<Value>): Value {
  if (!result.ok) throw new Error(`refused: ${result.problem.code} ${result.problem.detail}`);
  return result.value;
}

/** The code of the problem; null for a success. */
export function refusalOf(result: Result<unknown>): ProblemCode | null {
  return result.ok ? null : result.problem.code;
}

/** An agent's store after its start, with steps for the exchange with its upstream. */
export class AgentHarness extends Harness {
  policy: SyncPolicy = {
    reconcileAfterMs: minute,
    writers: 'single',
    onUncertain: 'infer',
    backoff: { firstMs: second, maxMs: 15 * minute },
    goneMs: minute,
    refreshMs: 6 * hour,
    graceMs: 14 * day,
  };
  freshness: FreshnessPolicy = defaultFreshnessPolicy;
  maxPending = 1000;
  /** The path of the state directory. */
  place = 'here';

  /** Starts the process on this store. */
  async start(): Promise<void> {
    valueOf(
      await this.writer.write('startAgent', {
        adminTokenDigest: 'd',
        place: this.place,
        reconcileAfterMs: this.policy.reconcileAfterMs,
      }),
    );
  }

  /** Crashes the process, and starts it again. */
  async restart(): Promise<void> {
    this.reopen();
    this.pass(second);
    await this.start();
    this.check();
  }

  async change(
    trigger: Exclude<LicenseTrigger, 'refund'>,
    {
      idempotency = null,
      licenseKey = key,
      below = null,
      amount = 1,
    }: { idempotency?: Idempotency | null; licenseKey?: string; below?: Keyed | null; amount?: number } = {},
  ): Promise<Result<QueuedChange>> {
    const { freshness, maxPending } = this;
    const command = { productIds: [productKey], licenseKey, trigger, amount, freshness, maxPending, below };
    const result = await this.writer.write('queueChange', command, { idempotency });
    this.check();
    return result;
  }

  /** Records a change that is accepted; returns its operation. */
  async record(trigger: Exclude<LicenseTrigger, 'refund'>, amount = 1): Promise<string> {
    const { operationId } = valueOf(await this.change(trigger, { amount }));
    if (operationId === null) throw new Error(`${trigger} needs no operation`);
    return operationId;
  }

  async plan(queue: QueueName, { justRead = false }: { justRead?: boolean } = {}): Promise<PlannedStep> {
    const step = valueOf(await this.writer.write('planStep', { subject: key, queue, justRead }));
    this.check();
    return step;
  }

  /** Plans a step, which must be a send; returns the operation in flight. */
  async send(queue: QueueName, options: { justRead?: boolean } = {}): Promise<Operation> {
    const step = await this.plan(queue, options);
    if (step.step !== 'send') throw new Error(`the ${queue} queue needs ${step.step}, not send`);
    return step.operation;
  }

  async answer(
    { id }: { id: string },
    outcome: Applied<License> | NotApplied | Ambiguous,
    { overlapped = false }: { overlapped?: boolean } = {},
  ): Promise<RecordedResponse> {
    const { policy } = this;
    const command = { operationId: id, outcome, overlapped, policy };
    const recorded = valueOf(await this.writer.write('recordResponse', command));
    this.check();
    return recorded;
  }

  /** Records the result of a read that was sent now, or at `sentAt`. */
  async read(
    outcome: Applied<License> | NotApplied | Ambiguous,
    {
      sentAt = this.monotonic,
      isMissingConfirmed = true,
    }: { sentAt?: number; isMissingConfirmed?: boolean } = {},
  ): Promise<RecordedRead> {
    const { policy } = this;
    const command = { licenseKey: key, productId: productKey, outcome, sentAt, isMissingConfirmed, policy };
    const recorded = valueOf(await this.writer.write('recordRead', command));
    this.check();
    return recorded;
  }

  /** The upstream's response in the specification's format. */
  says(uses: number, { enabled = true, ...extra }: SaidBeside = {}): Applied<License> {
    const license = { licenseKey: key, productKey: 'link', buyerEmail: 'a@example.com', createdAt: 1 };
    return {
      outcome: 'applied',
      value: { ...license, uses, enabled, ...extra },
      confirmedAt: this.now,
      isCached: false,
    };
  }

  /** The same response from a cache that stored it `ageMs` ago. */
  cacheSays(uses: number, ageMs: number, how: { enabled?: boolean } = {}): Applied<License> {
    return { ...this.says(uses, how), confirmedAt: this.now - ageMs, isCached: true };
  }

  get snapshot(): LicenseSnapshot {
    const snapshot = this.store.snapshots.get(key);
    if (snapshot === null) throw new Error('the key was never read');
    return snapshot;
  }

  get local(): LocalState {
    return this.snapshot.local;
  }

  operation(id: string): Operation {
    const operation = this.store.operations.get(id);
    if (operation === null) throw new Error(`there is no operation ${id}`);
    return operation;
  }

  stateOf(id: string): string {
    const { progress } = this.operation(id);
    return progress.state === 'uncertain' && progress.held ? 'held' : progress.state;
  }

  /** When the head of a queue is due, in ms from now; null if it waits for nothing. */
  dueIn(queue: QueueName): number | null {
    const nextAt = this.store.operations.head(key, queue)?.nextAt ?? null;
    return nextAt === null ? null : nextAt - this.monotonic;
  }

  /** Throws if an invariant that holds after every command is violated. */
  check(): void {
    const { operations, snapshots } = this.store;
    const snapshot = snapshots.get(key);
    if (snapshot !== null) {
      deepStrictEqual(
        snapshot.local,
        localState(snapshot.license, operations.visibleToCallers(snapshot.license.licenseKey)),
      );
    }
    for (const queue of ['counter', 'state'] as const) {
      const [head, ...behind] = operations.queue(key, queue);
      const waits = head !== undefined && head.nextAt !== null;
      const isFlying = head?.progress.state === 'in_flight';
      ok(head === undefined || waits !== isFlying, `the head of ${queue} neither waits nor is under way`);
      ok(!behind.some(({ nextAt }) => nextAt !== null), `${queue} has one behind its head that is due`);
      ok(!behind.some(({ progress }) => progress.state === 'in_flight'), `${queue} has two under way`);
    }
  }
}

/** An agent that has read the key with this number of uses. */
export async function createAgent(
  { uses = 5, ...said }: { uses?: number } & SaidBeside = {},
  policy: Partial<SyncPolicy> = {},
): Promise<AgentHarness> {
  const harness = new AgentHarness();
  harness.policy = { ...harness.policy, ...policy };
  await harness.start();
  await harness.read(harness.says(uses, said));
  return harness;
}

/** The members of the upstream's response other than the count. */
type SaidBeside = Partial<Pick<License, 'enabled' | 'extra' | 'createdAt'>>;

/** Whether the change was applied is unknown. */
export const lost: Ambiguous = {
  outcome: 'ambiguous',
  status: null,
  detail: 'the answer was lost',
  retryAfterMs: null,
};

/** The upstream, or the network before it, refused. */
export function no(reason: NotAppliedReason, retryAfterMs: number | null = null): NotApplied {
  return { outcome: 'not_applied', reason, status: null, detail: `no: ${reason}`, retryAfterMs };
}
