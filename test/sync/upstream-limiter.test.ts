import { describe, expect, it } from 'vitest';
import type { NotAppliedReason, Outcome } from '../../src/domain/outbox/outcome.ts';
import { UpstreamLimiter, type Admission } from '../../src/sync/upstream-limiter.ts';
import { VirtualTime, type VirtualClock } from '../support/harness/virtual-clock.ts';

const forEver = new AbortController().signal;
const second = 1000;
const minute = 60 * second;

const applied: Outcome<null> = { outcome: 'applied', value: null, confirmedAt: 0, isCached: false };
const lost: Outcome<null> = {
  outcome: 'ambiguous',
  status: null,
  detail: 'no answer in time',
  retryAfterMs: null,
};

function no(reason: NotAppliedReason, retryAfterMs: number | null = null): Outcome<null> {
  const status = reason === 'unreachable' ? null : 400;
  return { outcome: 'not_applied', reason, status, detail: `no: ${reason}`, retryAfterMs };
}

/** Nothing was sent, because the credential is missing. */
const unsent: Outcome<null> = {
  outcome: 'not_applied',
  reason: 'unauthorized',
  status: null,
  detail: 'no secret',
  retryAfterMs: null,
};

/** A limiter that opens its breaker after three failures, for ten seconds. */
class Line {
  readonly time: VirtualTime = new VirtualTime();
  readonly clock: VirtualClock = this.time.clock({ wall: 0 });
  recoveries = 0;
  changes = 0;
  /** What is stored for a restart. */
  readonly waits: number[] = [];
  readonly told: string[] = [];
  readonly counted: string[] = [];
  /** The configuration; a reload can change it. */
  credentials: { productIds: readonly string[]; hasApiKey: boolean } = {
    productIds: ['press', 'other'],
    hasApiKey: true,
  };
  readonly limiter: UpstreamLimiter;

  constructor(rate: number = 1000) {
    this.limiter = new UpstreamLimiter({
      clock: this.clock,
      log: {
        debug: () => undefined,
        info: (_, message) => this.told.push(message),
        warn: (_, message) => this.told.push(message),
        error: (_, message) => this.told.push(message),
      },
      meter: { answered: (outcome) => this.counted.push(outcome) },
      settings: () => ({
        rate,
        breaker: { failures: 3, openMs: 10 * second },
        productKeyOf: (id) => id,
        ...this.credentials,
      }),
      onRecovery: () => {
        this.recoveries += 1;
      },
      onChange: () => {
        this.changes += 1;
      },
      onRetryAfter: (until) => {
        this.waits.push(until);
      },
      lifetime: forEver,
    });
  }

  observe(...outcomes: Outcome<null>[]): void {
    for (const outcome of outcomes) this.observeAbout('KEY', outcome);
  }

  observeAbout(subject: string, ...outcomes: Outcome<null>[]): void {
    for (const outcome of outcomes) this.limiter.observe(outcome, { owner: 'press', subject });
  }

  async fail(): Promise<void> {
    this.observe(lost, lost, lost);
    await this.time.settle();
  }

  get isOpen(): boolean {
    return this.limiter.admission().admitted;
  }
}

/** The upstream answered with a page or status without a meaning. */
const broken: Outcome<null> = { ...lost, status: 500, detail: 'HTTP 500' };

const admitted: Admission = { admitted: true };

describe('the upstream limiter', () => {
  it('the limiter is open before anything is known of the upstream', () => {
    const line = new Line();
    expect(line.limiter.admission()).toEqual(admitted);
    expect(line.limiter.status()).toMatchObject({ state: 'unknown', breaker: 'closed', lastSuccessAt: null });
  });

  it('the upstream is down at the first outage, and only probes pass after several in a row', async () => {
    const line = new Line();
    line.observe(lost);
    expect(line.limiter.status()).toMatchObject({ state: 'down', breaker: 'closed' });
    expect(line.isOpen).toBe(true);
    line.observe(no('unreachable'), lost);
    expect(line.limiter.status()).toMatchObject({ breaker: 'open', lastError: 'no answer in time' });
    expect(line.isOpen).toBe(false);
    expect(await line.limiter.admit('caller', forEver)).toMatchObject({ admitted: false });
  });

  it.each(['refused', 'missing', 'throttled', 'rejected'] as const)(
    'the upstream is up if it answers, whatever the answer: %s',
    async (reason) => {
      const line = new Line();
      await line.fail();
      line.observe(no(reason));
      expect(line.limiter.status()).toMatchObject({ state: 'up', breaker: 'closed' });
      expect(line.recoveries).toBe(1);
    },
  );

  it('waiters are notified once when the upstream is back', () => {
    const line = new Line();
    line.observe(lost);
    expect(line.recoveries).toBe(0);
    line.observe(applied, applied);
    expect(line.recoveries).toBe(1);
  });

  it('waiters of the previous process are notified by the first response after the start', () => {
    const line = new Line();
    expect(line.limiter.status().state).toBe('unknown');
    line.observe(applied, applied);
    expect(line.recoveries).toBe(1);
  });

  it('the limiter knows since when the upstream has its state, and the time of the last success', async () => {
    const line = new Line();
    await line.time.advance(second);
    line.observe(applied);
    await line.time.advance(second);
    line.observe(applied);
    expect(line.limiter.status()).toMatchObject({ since: second, lastSuccessAt: 2 * second });
    await line.time.advance(second);
    line.observe(no('throttled'), lost);
    expect(line.limiter.status()).toMatchObject({ since: 3 * second, lastSuccessAt: 2 * second });
    line.observe(no('missing'));
    expect(line.limiter.status()).toMatchObject({ since: 3 * second, lastSuccessAt: 3 * second });
  });

  it('the loss and the return of the upstream are logged once each', () => {
    const line = new Line();
    line.observe(applied, lost, lost, lost, applied, applied);
    expect(line.told).toEqual([
      'the upstream is unavailable: answering from local state',
      'the upstream answers again',
    ]);
  });

  it('outcomes of requests are counted', () => {
    const line = new Line();
    line.observe(applied, lost, no('throttled'));
    expect(line.counted).toEqual(['applied', 'ambiguous', 'not_applied']);
  });
});

describe('a key at which the upstream always fails', () => {
  it('a key that always fails affects only itself, and the upstream stays up', () => {
    const line = new Line();
    line.observeAbout('GOOD', applied);
    for (let count = 0; count < 20; count += 1) line.observeAbout('BAD', broken);
    expect(line.limiter.status()).toMatchObject({ state: 'up', breaker: 'closed', lastError: 'HTTP 500' });
    line.observeAbout('GOOD', applied);
    expect(line.recoveries).toBe(1);
  });

  it('a key that always fails is told from a failing upstream by an immediate probe of another key', async () => {
    const line = new Line();
    line.observeAbout('GOOD', applied);
    for (const key of ['BAD', 'WORSE', 'BAD']) line.observeAbout(key, broken);
    expect(line.isOpen).toBe(false);
    expect(line.limiter.nextProbe(30 * second)).toEqual({ at: 0, of: 'upstream' });
    const { changes, recoveries } = line;
    expect(await line.limiter.admitProbe(forEver)).toEqual(admitted);
    line.observeAbout('GOOD', applied);
    expect(line.isOpen).toBe(true);
    expect(line.limiter.status().state).toBe('up');
    expect([line.changes - changes, line.recoveries - recoveries]).toEqual([1, 0]);
  });

  it('a key is not blamed if the probe of another key fails as well: the upstream is down', async () => {
    const line = new Line();
    for (const key of ['A', 'B', 'C']) line.observeAbout(key, broken);
    await line.limiter.admitProbe(forEver);
    line.observeAbout('D', broken);
    expect(line.limiter.status()).toMatchObject({ state: 'down', breaker: 'open' });
    expect(line.limiter.nextProbe(30 * second).at).toBe(10 * second);
    await line.time.advance(10 * second);
    await line.limiter.admitProbe(forEver);
    line.observeAbout('D', applied);
    expect(line.recoveries).toBe(1);
  });
});

describe('a cached response', () => {
  const cached: Outcome<null> = { ...applied, isCached: true };

  it('a cached response does not show that the upstream is up or accepts a credential', async () => {
    const line = new Line();
    line.observe(no('unauthorized'));
    await line.fail();
    const before = line.limiter.status();
    const { recoveries } = line;
    line.observe(cached, no('cached'));
    expect(line.limiter.status()).toEqual(before);
    expect(line.limiter.refusedCredentials()).toEqual(['press']);
    expect(line.recoveries).toBe(recoveries);
  });

  it('a cached response is no outage', () => {
    const line = new Line();
    line.observe(cached, no('cached'), cached, no('cached'));
    expect(line.limiter.status()).toMatchObject({ state: 'unknown', breaker: 'closed', lastSuccessAt: null });
  });
});

describe('a probe', () => {
  it('a probe is due when the breaker says so, and is let through then', async () => {
    const line = new Line();
    await line.fail();
    expect(line.limiter.nextProbe(30 * second)).toEqual({ at: 10 * second, of: 'upstream' });
    expect(await line.limiter.admitProbe(forEver)).toMatchObject({ admitted: false });
    await line.time.advance(10 * second);
    expect(await line.limiter.admitProbe(forEver)).toEqual(admitted);
    expect(line.limiter.status().breaker).toBe('half_open');
    expect(line.isOpen).toBe(false);
  });

  it('an answered probe closes the breaker, and a failed probe opens it for the same time again', async () => {
    const line = new Line();
    await line.fail();
    await line.time.advance(10 * second);
    await line.limiter.admitProbe(forEver);
    line.observe(lost);
    expect(line.limiter.nextProbe(30 * second).at).toBe(20 * second);
    await line.time.advance(10 * second);
    await line.limiter.admitProbe(forEver);
    line.observe(applied);
    expect(line.limiter.status()).toMatchObject({ state: 'up', breaker: 'closed' });
    expect(line.recoveries).toBe(1);
  });

  it('a probe is due if nothing was sent for a while', async () => {
    const line = new Line();
    await line.time.advance(5 * second);
    line.observe(applied);
    expect(line.limiter.nextProbe(30 * second)).toEqual({ at: 35 * second, of: 'upstream' });
  });

  it('a probe waits for Retry-After like other requests', async () => {
    const line = new Line();
    await line.fail();
    line.observe({ ...lost, retryAfterMs: minute });
    await line.time.advance(10 * second);
    expect(line.limiter.nextProbe(30 * second)).toEqual({ at: minute, of: 'upstream' });
    expect(await line.limiter.admitProbe(forEver)).toMatchObject({ admitted: false, againAt: minute });
    expect(line.limiter.status().breaker).toBe('open');
    await line.time.advance(50 * second);
    expect(await line.limiter.admitProbe(forEver)).toEqual(admitted);
  });

  it('a probe that waits for its turn when Retry-After arrives is not sent, and leaves the breaker as it was', async () => {
    const line = new Line();
    await line.fail();
    await line.time.advance(10 * second);
    const probe = line.limiter.admitProbe(forEver);
    line.observe(no('throttled', minute));
    line.observe(lost, lost, lost);
    expect(await probe).toMatchObject({ admitted: false });
    expect(line.limiter.status().breaker).toBe('open');
  });

  it('a probe that is held back uses no turn', async () => {
    const { limiter, time } = new Line(0.5);
    const first = limiter.admitProbe(forEver);
    const second_ = limiter.admitProbe(forEver);
    limiter.pause();
    expect(await first).toMatchObject({ admitted: false });
    await time.settle();
    expect(await second_).toMatchObject({ admitted: false });
    limiter.resume();
    expect(await limiter.admitProbe(forEver)).toEqual(admitted);
  });

  it('a probe without any outcome is followed by another', async () => {
    const line = new Line();
    await line.fail();
    await line.time.advance(10 * second);
    await line.limiter.admitProbe(forEver);
    expect(line.limiter.nextProbe(30 * second)).toEqual({ at: 20 * second, of: 'upstream' });
    await line.time.advance(10 * second);
    expect(await line.limiter.admitProbe(forEver)).toEqual(admitted);
  });

  it('a probe is due at once after the machine has slept', async () => {
    const line = new Line();
    await line.fail();
    line.limiter.probeNow();
    expect(line.limiter.nextProbe(30 * second).at).toBe(0);
    expect(await line.limiter.admitProbe(forEver)).toEqual(admitted);
  });
});

describe('Retry-After', () => {
  it('Retry-After is a minimum for everything, callers included', async () => {
    const line = new Line();
    line.observe(no('throttled', 20 * second));
    const waits = { admitted: false, detail: 'the upstream asked to wait', againAt: 20 * second };
    expect(line.limiter.admission()).toEqual(waits);
    expect(await line.limiter.admit('caller', forEver)).toEqual(waits);
    await line.time.advance(20 * second);
    expect(line.isOpen).toBe(true);
  });

  it('Retry-After is not shortened by another one, a response or a person', () => {
    const line = new Line();
    line.observe(no('throttled', 20 * second), no('throttled', second), applied);
    line.limiter.closeBreaker();
    line.limiter.resume();
    expect(line.limiter.admission()).toMatchObject({ admitted: false, againAt: 20 * second });
  });

  it('a longer Retry-After is stored for the next start', () => {
    const line = new Line();
    line.observe(no('throttled', 20 * second), no('throttled', second), { ...lost, retryAfterMs: minute });
    expect(line.waits).toEqual([20 * second, minute]);
  });

  it('Retry-After holds in the next process, too', async () => {
    const line = new Line();
    line.limiter.waitUntil(20 * second);
    line.limiter.closeBreaker();
    expect(await line.limiter.admit('caller', forEver)).toMatchObject({
      admitted: false,
      againAt: 20 * second,
    });
    await line.time.advance(20 * second);
    expect(line.isOpen).toBe(true);
  });

  it('Retry-After delays the read that retries a rejected credential', () => {
    const line = new Line();
    line.observe(no('unauthorized', 60 * minute));
    expect(line.limiter.nextProbe(24 * 60 * minute)).toMatchObject({ at: 60 * minute, of: 'credential' });
  });
});

describe('a credential that the upstream rejects', () => {
  it('a rejected credential pauses only its own requests', () => {
    const line = new Line();
    line.observe(no('unauthorized'));
    expect(line.limiter.refusedCredentials()).toEqual(['press']);
    expect(line.isOpen).toBe(true);
    expect(line.limiter.status()).toMatchObject({ pausedProducts: ['press'], couponsPaused: false });
    line.limiter.observe(no('unauthorized'), { owner: null, subject: 'coupons' });
    expect(line.limiter.status()).toMatchObject({ pausedProducts: ['press'], couponsPaused: true });
  });

  it('a rejected credential is retried soon by a read, because only one key may be rejected, and then every 15 minutes', async () => {
    const line = new Line();
    line.observe(no('unauthorized'));
    const soon = line.limiter.nextProbe(24 * 60 * minute);
    expect(soon).toEqual({ at: second, of: 'credential', owner: 'press' });
    await line.time.advance(second);
    line.observe(no('unauthorized'));
    const later = line.limiter.nextProbe(24 * 60 * minute);
    expect(later).toEqual({ at: second + 15 * minute, of: 'credential', owner: 'press' });
    await line.time.advance(15 * minute);
    const { recoveries } = line;
    line.observe(applied);
    expect(line.limiter.refusedCredentials()).toEqual([]);
    expect(line.recoveries).toBe(recoveries + 1);
  });

  it('a rejected credential is retried as soon if several requests were in flight at the rejection', () => {
    const line = new Line();
    line.observe(no('unauthorized'), no('unauthorized'), no('unauthorized'));
    expect(line.limiter.nextProbe(24 * 60 * minute)).toMatchObject({ at: second, owner: 'press' });
  });

  it('the rejection and the later acceptance of a credential are logged once each', () => {
    const line = new Line();
    line.observe(no('unauthorized'), no('unauthorized'), applied, applied);
    expect(line.told).toEqual([
      'the upstream refuses our credential',
      'the upstream accepts our credential again',
    ]);
  });

  it('a rejected credential stays rejected during an outage, which proves nothing about it', () => {
    const line = new Line();
    line.observe(no('unauthorized'), lost, no('unreachable'));
    expect(line.limiter.refusedCredentials()).toEqual(['press']);
  });

  it('a rejected credential is retried when it was changed or a person asks for it', () => {
    const line = new Line();
    line.observe(applied, no('unauthorized'));
    const { recoveries } = line;
    line.limiter.retryCredentials();
    expect(line.limiter.refusedCredentials()).toEqual([]);
    line.observe(no('unauthorized'));
    line.limiter.resume();
    expect(line.limiter.refusedCredentials()).toEqual([]);
    expect(line.recoveries).toBe(recoveries + 2);
  });
});

describe('a credential that is no longer configured', () => {
  it('a credential that is no longer configured is neither rejected nor retried', () => {
    const line = new Line();
    line.credentials = { productIds: ['other'], hasApiKey: false };
    line.observe(unsent);
    line.limiter.observe(unsent, { owner: null, subject: 'coupons' });
    expect(line.told).toEqual([]);
    expect(line.limiter.status()).toMatchObject({
      pausedProducts: [],
      couponsPaused: false,
      lastError: null,
    });
    expect(line.limiter.nextProbe(24 * 60 * minute)).toMatchObject({ of: 'upstream' });
  });

  it('a credential that is no longer configured sends nothing, with the reason', () => {
    const line = new Line();
    line.credentials = { productIds: ['other'], hasApiKey: true };
    expect(['press', 'other', null].map((owner) => line.limiter.isAccepted(owner))).toEqual([
      false,
      true,
      true,
    ]);
    expect(line.limiter.blocker('press')).toEqual({ cause: 'credential_missing' });
    expect(line.limiter.blocker('other')).toBeNull();
  });
});

it('the limiter reports when its last error came and when it ended', async () => {
  const line = new Line();
  await line.fail();
  expect(line.limiter.status()).toMatchObject({ lastErrorAt: line.clock.now(), recoveredAt: null });
  await line.time.advance(minute);
  line.observe(applied);
  const recoveredAt = line.clock.now();
  await line.time.advance(minute);
  line.observe(applied);
  expect(line.limiter.status()).toMatchObject({ lastErrorAt: recoveredAt - minute, recoveredAt });
});

it('the limiter has not recovered while a credential is rejected', () => {
  const line = new Line();
  line.observe(no('unauthorized'));
  line.limiter.observe(applied, { owner: 'other', subject: 'K' });
  expect(line.limiter.status().recoveredAt).toBeNull();
  line.observe(applied);
  expect(line.limiter.status().recoveredAt).not.toBeNull();
});

it('the limiter reports what blocks requests, and first what a person can end', () => {
  const line = new Line();
  expect(line.limiter.blocker('press')).toBeNull();
  line.observe(no('throttled', 20 * second));
  expect(line.limiter.blocker('press')).toEqual({ cause: 'retry_after', until: 20 * second });
  line.observe(no('unauthorized'));
  expect(line.limiter.blocker('press')).toEqual({ cause: 'credential_refused', until: second });
  expect(line.limiter.blocker('other')).toMatchObject({ cause: 'retry_after' });
  line.limiter.pause();
  expect(line.limiter.blocker('press')).toEqual({ cause: 'paused' });
});

it('the limiter reports the end of Retry-After by the wall clock', async () => {
  const line = new Line();
  expect(line.limiter.status().retryAfterUntil).toBeNull();
  line.observe(no('throttled', 24 * 60 * minute));
  const until = line.clock.now() + 24 * 60 * minute;
  await line.time.advance(minute);
  expect(line.limiter.status().retryAfterUntil).toBe(until);
  await line.time.advance(24 * 60 * minute);
  expect(line.limiter.status().retryAfterUntil).toBeNull();
});

it('the limiter reports the time of the next probe if the upstream is down', async () => {
  const line = new Line();
  await line.fail();
  const { at } = line.limiter.nextProbe(0);
  expect(line.limiter.blocker('press')).toEqual({ cause: 'upstream_away', until: at });
});

it('the limiter reports the next attempt at an upstream that is down by the wall clock', async () => {
  const line = new Line();
  expect(line.limiter.status().nextAttemptAt).toBeNull();
  await line.fail();
  const { at } = line.limiter.nextProbe(0);
  const leftMs = at - line.clock.monotonic();
  expect(leftMs).toBeGreaterThan(0);
  expect(line.limiter.status().nextAttemptAt).toBe(line.clock.now() + leftMs);
  line.limiter.pause();
  expect(line.limiter.status().nextAttemptAt).toBeNull();
});

describe('a person', () => {
  it('a pause by a person stops everything, probes included, until it is ended', async () => {
    const line = new Line();
    line.limiter.pause();
    const paused = { admitted: false, detail: 'sync is paused', againAt: null };
    expect(line.limiter.admission()).toEqual(paused);
    expect(await line.limiter.admitProbe(forEver)).toEqual(paused);
    await line.time.advance(second);
    line.limiter.pause();
    expect(line.limiter.status()).toMatchObject({ state: 'paused', since: 0 });
    line.limiter.resume();
    expect(line.isOpen).toBe(true);
  });

  it('sync now overrides the breaker', async () => {
    const line = new Line();
    await line.fail();
    line.limiter.closeBreaker();
    expect(line.isOpen).toBe(true);
    expect(line.recoveries).toBe(1);
  });

  it('a pause while a request waits for its turn stops the request and uses no turn', async () => {
    const { limiter, time } = new Line(1);
    await limiter.admit('delivery', forEver);
    await limiter.admit('delivery', forEver);
    const third = limiter.admit('delivery', forEver);
    limiter.pause();
    await time.advance(second);
    expect(await third).toMatchObject({ admitted: false });
    limiter.resume();
    expect(await limiter.admit('delivery', forEver)).toEqual(admitted);
  });
});
