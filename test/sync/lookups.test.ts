import { describe, expect, it } from 'vitest';
import type { Outcome } from '../../src/domain/outbox/outcome.ts';
import { NamedRate } from '../../src/http/entry/request-rates.ts';
import type { Lookups } from '../../src/service/ports.ts';
import { minute, second, startSyncStage, type SyncStage } from '../support/stage/sync-stage.ts';

/** Two unknown keys a second, twenty at once, as the default of `limits.misses` is. */
class Credential implements Lookups {
  readonly credential: string;
  readonly #rate: NamedRate;

  constructor(stage: SyncStage, credential: string = 'till') {
    this.credential = credential;
    this.#rate = new NamedRate(
      () => 2,
      () => stage.time.elapsed,
      10,
    );
  }

  readonly waitMs = (): number => this.#rate.waitOf(this.credential);
  readonly charge = (): void => this.#rate.charge(this.credential);
  readonly giveBack = (count: number): void => this.#rate.giveBack(this.credential, count);

  /** How many may be looked up at once. */
  get left(): number {
    let left = 0;
    while (this.#rate.take(this.credential) === 0) left += 1;
    this.#rate.giveBack(this.credential, left);
    return left;
  }
}

const unreachable: Outcome<never> = {
  outcome: 'not_applied',
  reason: 'unreachable',
  status: null,
  detail: 'connection refused',
  retryAfterMs: null,
};
const products = Array.from({ length: 60 }, (_, index) => `product-${index}`);

describe('who asks for keys that nobody knows', () => {
  it('pays for each before it goes up, so that asking for all at once wins nothing', async () => {
    using stage = await startSyncStage([]);
    const till = new Credential(stage);
    const answers = Array.from({ length: 100 }, (_, index) => stage.ask(`GUESS-${index}`, till));
    await stage.time.advance(minute);
    const codes = (await Promise.all(answers)).map((answer) => (answer.ok ? 'ok' : answer.problem.code));
    expect(codes.filter((code) => code === 'license_not_found').length).toBe(20);
    expect(codes.filter((code) => code === 'rate_limited').length).toBe(80);
    expect(stage.vendor.asked.filter((asked) => asked.includes('GUESS')).length).toBe(20);
  });

  it('pays nothing for one that is remembered as unknown', async () => {
    using stage = await startSyncStage([]);
    const till = new Credential(stage);
    for (let count = 0; count < 50; count += 1) {
      expect(await stage.verify('GUESS', till)).toMatchObject({ problem: { code: 'license_not_found' } });
    }
    expect(till.left).toBe(19);
    expect(stage.vendor.asked.length).toBe(1);
  });

  it('pays nothing for a key that turns out to be one', async () => {
    using stage = await startSyncStage(['NEW']);
    const till = new Credential(stage);
    expect(await stage.verify('NEW', till)).toMatchObject({ ok: true });
    expect(till.left).toBe(20);
  });

  it('pays for as many requests as went up: one for each product', async () => {
    using stage = await startSyncStage([], { productIds: products, rate: 100 });
    const till = new Credential(stage);
    await stage.verify('GUESS', till);
    expect(stage.vendor.asked.length).toBe(60);
    const refused = await stage.verify('GUESS-2', till);
    expect(refused).toMatchObject({ problem: { code: 'rate_limited' } });
    expect(till.waitMs()).toBeGreaterThan(15 * second);
  });

  it('pays nothing while the upstream is away', async () => {
    using stage = await startSyncStage([]);
    stage.vendor.instead = () => unreachable;
    const till = new Credential(stage);
    for (let count = 0; count < 30; count += 1) await stage.verify(`KEY-${count}`, till);
    expect(till.left).toBe(20);
  });

  it('keeps nobody with another credential waiting, nor keys that are known', async () => {
    using stage = await startSyncStage(['KNOWN', 'NEW']);
    await stage.verify('KNOWN');
    const crawler = new Credential(stage, 'crawler');
    for (let index = 0; index < 100; index += 1) void stage.ask(`GUESS-${index}`, crawler);
    const before = stage.time.elapsed;
    expect(await stage.verify('NEW', new Credential(stage, 'till'))).toMatchObject({ ok: true });
    expect(stage.time.elapsed - before).toBeLessThan(second);
    expect(await stage.verify('KNOWN', crawler)).toMatchObject({ ok: true });
  });

  it('shares the request with who asks for the same key meanwhile, and pays for it alone', async () => {
    using stage = await startSyncStage([]);
    const [first, second_] = [new Credential(stage, 'first'), new Credential(stage, 'second')];
    const answers = [stage.ask('GUESS', first), stage.ask('GUESS', second_)];
    expect([first.left, second_.left]).toEqual([19, 20]);
    await stage.time.advance(second);
    await Promise.all(answers);
    expect(stage.vendor.asked.length).toBe(1);
  });
});
