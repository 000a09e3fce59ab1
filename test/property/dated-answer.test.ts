import { array, asyncProperty, assert, constantFrom, integer, nat, oneof, option, record } from 'fast-check';
import { expect, it } from 'vitest';
import { recordTime } from '../../src/daemon/maintenance.ts';
import type { ClockReading } from '../../src/domain/clock.ts';
import { isFailure } from '../../src/domain/problem/problem.ts';
import { PersistentClock } from '../../src/daemon/system/clock.ts';
import { runUseCase } from '../../src/service/run.ts';
import type { Writer } from '../../src/service/writer.ts';
import { localWriter } from '../../src/store/sqlite/commit.ts';
import type { Exchange } from '../../src/upstream/exchange.ts';
import { upstreamClientOver } from '../../src/upstream/client.ts';
import { asSpecified } from '../support/harness/upstream-harness.ts';
import { Machine } from './simulation/machine.ts';
import { SeededRandom } from './simulation/seeded-random.ts';

const day = 86_400_000;
/** A crash may lose the time since the last mark (src/sync/LIMITS.md, The clock). */
const unmarkedMs = 60_000;
const { signal } = new AbortController();

const policy = {
  reconcileAfterMs: 10_000,
  writers: 'single',
  onUncertain: 'infer',
  backoff: { firstMs: 500, maxMs: 900_000 },
  goneMs: 60_000,
  refreshMs: 600_000,
  graceMs: 14 * day,
} as const;

/** Events of a machine, its process and its responses. Dates are ms ahead of the true time. */
type Input =
  | { input: 'pass'; ms: number }
  | { input: 'turn'; byMs: number }
  | { input: 'crash' }
  | { input: 'answer' | 'list'; date: number | null; ageS: number };

const pass = record({ input: constantFrom('pass' as const), ms: nat(3 * day) });
const turn = record({
  input: constantFrom('turn' as const),
  byMs: integer({ min: -100 * day, max: 100 * day }),
});
const crash = record({ input: constantFrom('crash' as const) });
const answer = record({
  input: constantFrom('answer' as const, 'list' as const),
  date: option(oneof(nat(1_000), integer({ min: -50 * day, max: 50 * day }))),
  ageS: oneof(constantFrom(0), nat(1_000_000)),
});

const license = { license_key: 'KEY-1', enabled: true, product_link: 'p', buyer_email: 'b@example.com' };
const texts = {
  answer: JSON.stringify({ data: { ...license, uses: 1, date: '2025-12-01T00:00:00Z' } }),
  list: JSON.stringify({
    data: {
      coupons: [
        { id: 1, coupon_type: 'multi', percent_off: 20, amount_off: null, code: 'SPRING', start_date: null },
      ].map((coupon) => ({
        ...coupon,
        end_date: null,
        product_key: null,
        collection_id: null,
        minimum_purchase_amount: null,
        usage_limit: null,
        notes: null,
      })),
    },
  }),
} as const;

/** A machine whose wall clock changes, and a process with the clock, client and store of the daemon. */
class Desk implements Disposable {
  readonly machine = new Machine();
  readonly writer: Writer;
  clock: PersistentClock;
  #truth = Date.UTC(2026, 0, 1);
  #reading: ClockReading = { wall: this.#truth, monotonic: 0 };
  readonly #random = new SeededRandom(1);
  #recording: Promise<void> = Promise.resolve();

  constructor() {
    this.clock = this.#newClock(null);
    this.writer = localWriter(this.machine, {
      run: runUseCase,
      isFailure,
      context: () => ({
        now: this.clock.now(),
        monotonic: this.clock.monotonic(),
        random: this.#random,
        digest: (secret) => secret,
        recordsHistory: true,
      }),
    });
  }

  async suffer(input: Input): Promise<void> {
    const { wall, monotonic } = this.#reading;
    switch (input.input) {
      case 'pass':
        this.#truth += input.ms;
        this.#reading = { wall: wall + input.ms, monotonic: monotonic + input.ms };
        break;
      case 'turn':
        this.#reading = { wall: wall + input.byMs, monotonic };
        // As the daemon does (daemon/maintenance.ts).
        if (this.clock.checkWall()) await recordTime(this);
        break;
      case 'crash':
        this.#reading = { wall, monotonic: 0 };
        this.clock = this.#newClock(await this.machine.storedTime());
        break;
      case 'answer':
      case 'list':
        await this.#hear(input);
        break;
      default:
        input satisfies never;
    }
  }

  /** How far ahead of the time the latest date in the store lies, in ms. */
  get ahead(): number {
    const { snapshots, mirror } = this.machine.transaction;
    const dates = [snapshots.get('KEY-1')?.confirmedAt, mirror.byCode('SPRING')?.confirmedAt];
    return Math.max(...dates.map((date) => date ?? 0)) - this.clock.now();
  }

  [Symbol.dispose](): void {
    this.machine[Symbol.dispose]();
  }

  #newClock(mark: ConstructorParameters<typeof PersistentClock>[0]): PersistentClock {
    return new PersistentClock(mark, { read: () => this.#reading, sleep: () => Promise.resolve() });
  }

  async #hear({ input, date, ageS }: Extract<Input, { ageS: number }>): Promise<void> {
    const headers = {
      ...(date !== null && { date: new Date(this.#truth + date).toUTCString() }),
      ...(ageS > 0 && { age: String(ageS) }),
    };
    const exchange: Exchange = { type: 'answered', status: 200, headers, text: texts[input] };
    const upstream = this.#upstream(exchange);
    if (input === 'list') {
      const outcome = await upstream.listCoupons({ limit: 100, offset: 0 }, signal);
      await this.#recording;
      if (outcome.outcome !== 'applied') return;
      const { coupons } = outcome.value;
      const { confirmedAt } = outcome;
      await this.writer.write('mirrorCoupons', { coupons, confirmedAt, extent: 'list' });
      return;
    }
    const outcome = await upstream.verify('p', 'KEY-1', signal);
    await this.#recording;
    const read = { licenseKey: 'KEY-1', productId: 'p', outcome, sentAt: this.clock.monotonic() };
    await this.writer.write('recordRead', { ...read, isMissingConfirmed: true, policy });
  }

  #upstream(exchange: Exchange): ReturnType<typeof upstreamClientOver> {
    return upstreamClientOver(
      {
        send: () => Promise.resolve({ exchange, discard: () => undefined }),
        [Symbol.asyncDispose]: () => Promise.resolve(),
      },
      {
        baseUrl: 'https://upstream.example',
        apiKey: () => 'api-key',
        secretOf: () => 'secret',
        ...asSpecified,
        // As the daemon does (daemon/role/agent.ts).
        onDate: (said) => {
          if (this.clock.hear(said)) this.#recording = recordTime(this);
        },
      },
      this.clock,
    );
  }
}

it('no response of the upstream or of a cache is ever dated in the future, whatever the clocks show, even after a crash', async () => {
  const inputs = array(oneof(pass, turn, crash, answer, answer), { maxLength: 12 });
  await assert(
    asyncProperty(inputs, async (all) => {
      using desk = new Desk();
      for (const input of all) {
        await desk.suffer(input);
        expect(desk.ahead).toBeLessThanOrEqual(unmarkedMs);
      }
    }),
    { numRuns: 150 },
  );
});
