import { describe, expect, it } from 'vitest';
import type { Coupon, CouponTerms } from '../../src/domain/checkout/coupon.ts';
import type { Operation } from '../../src/domain/outbox/operation.ts';
import type { Outcome } from '../../src/domain/outbox/outcome.ts';
import type { Idempotency } from '../../src/service/ports.ts';
import type { MirroredCoupon } from '../../src/service/agent/tables.ts';
import { buildCart, buildTerms } from '../support/builders/coupon-builders.ts';
import {
  AgentHarness,
  lost,
  minute,
  no,
  refusalOf,
  second,
  valueOf,
} from '../support/harness/service-harness.ts';

const terms = buildTerms({
  scope: { type: 'single', productKey: 'press' },
  discount: { type: 'amount', amountOff: 500 },
  code: 'Spring',
});
const subject = 'spring';

class CouponHarness extends AgentHarness {
  async queue({ code = terms.code } = {}): Promise<MirroredCoupon> {
    const command = { terms: { ...terms, code }, isSentNow: false, maxPending: this.maxPending };
    return valueOf(await this.writer.write('queueCoupon', command));
  }

  /** A creation that is sent at once, because its caller waits. */
  async create(
    outcome: Outcome<Coupon>,
    { idempotency = null, own = terms }: { idempotency?: Idempotency | null; own?: CouponTerms } = {},
  ): Promise<Operation> {
    const command = { terms: own, isSentNow: true, maxPending: this.maxPending };
    const { operationId } = valueOf(await this.writer.write('queueCoupon', command, { idempotency }));
    const { policy } = this;
    const answer = { operationId, outcome, caller: { idempotency }, policy };
    return valueOf(await this.writer.write('recordCouponResponse', answer));
  }

  get head(): Operation | null {
    return this.store.operations.head(subject, 'coupon');
  }

  async sendCoupon(): Promise<Operation> {
    const planned = valueOf(
      await this.writer.write('planStep', { subject, queue: 'coupon', justRead: false }),
    );
    if (planned.step !== 'send') throw new Error(`the coupon queue needs ${planned.step}`);
    return planned.operation;
  }

  async answerCoupon({ id }: Operation, outcome: Outcome<Coupon>): Promise<Operation> {
    const { policy } = this;
    const answer = { operationId: id, outcome, caller: null, policy };
    return valueOf(await this.writer.write('recordCouponResponse', answer));
  }

  async listed({ id }: Operation, listed: Coupon | null): Promise<Operation> {
    const command = { operationId: id, listed, confirmedAt: this.now };
    return valueOf(await this.writer.write('recordCouponListing', command));
  }

  theirs(changes: Partial<Coupon> = {}): Coupon {
    return { ...terms, id: 7, ...changes };
  }

  codes(): string[] {
    return this.store.mirror
      .list({ limit: 10, offset: 0 })
      .map(({ coupon }) => `${coupon.id} ${coupon.code}`);
  }
}

async function createAgent(): Promise<CouponHarness> {
  const harness = new CouponHarness();
  await harness.start();
  return harness;
}

describe('a coupon that is queued on an agent', () => {
  it('a coupon is found by its provisional id, even after its real id is known', async () => {
    await using agent = await createAgent();
    const { coupon, confirmedAt } = await agent.queue();
    expect(coupon.id).toBeLessThan(0);
    expect(confirmedAt).toBeNull();
    const created: Outcome<Coupon> = {
      outcome: 'applied',
      value: agent.theirs(),
      confirmedAt: agent.now,
      isCached: false,
    };
    const { progress } = await agent.answerCoupon(await agent.sendCoupon(), created);
    expect(progress.state).toBe('delivered');
    expect(agent.store.mirror.get(coupon.id)?.coupon).toEqual(agent.theirs());
    expect(agent.codes()).toEqual(['7 Spring']);
  });

  it.each([
    ['was not reached', no('unreachable')],
    ['did not answer', lost],
  ])('a waiting coupon shows the reason if the upstream %s', async (_, outcome) => {
    await using agent = await createAgent();
    await agent.queue();
    const waiting = await agent.answerCoupon(await agent.sendCoupon(), outcome);
    expect(waiting.lastError).toBe(outcome.detail);
    expect(waiting).toEqual(agent.head);
  });

  it('a coupon with a known code is refused, ignoring case', async () => {
    await using agent = await createAgent();
    await agent.queue();
    const again = { terms: { ...terms, code: 'SPRING' }, isSentNow: false, maxPending: 10 };
    expect(refusalOf(await agent.writer.write('queueCoupon', again))).toBe('coupon_code_taken');
    expect(agent.codes()).toEqual(['-1 Spring']);
  });

  it('a coupon is refused if the outbox is full', async () => {
    await using agent = await createAgent();
    await agent.queue({ code: 'first' });
    const command = { terms, isSentNow: false, maxPending: 1 };
    expect(refusalOf(await agent.writer.write('queueCoupon', command))).toBe('storage_full');
  });

  it('a coupon whose response was lost waits for the reconcile delay before the list is read', async () => {
    await using agent = await createAgent();
    await agent.create(lost);
    expect(agent.head).toMatchObject({
      attempts: 1,
      nextAt: agent.monotonic + minute,
      progress: { state: 'uncertain', held: false },
    });
  });

  it('a listed coupon with every sent term is the created coupon', async () => {
    await using agent = await createAgent();
    const { coupon } = await agent.queue();
    const maybeApplied = await agent.answerCoupon(await agent.sendCoupon(), lost);
    expect(maybeApplied.progress.state).toBe('uncertain');
    expect(agent.head?.nextAt).toBe(agent.monotonic + minute);
    agent.pass(minute);
    // The upstream may have added terms that were not sent.
    const listed = agent.theirs({ notes: 'made by an interface' });
    expect((await agent.listed(maybeApplied, listed)).progress.state).toBe('delivered');
    expect(agent.store.mirror.get(coupon.id)?.coupon).toEqual(listed);
  });

  it('a listed coupon with every sent term is the created coupon, whatever the order of members', async () => {
    await using agent = await createAgent();
    const own = { ...terms, minimumPurchaseAmount: 50, usageLimit: 3, notes: 'ours' };
    await agent.create(lost, { own });
    const discount = { amountOff: 500, type: 'amount' } as const;
    const listed = { ...own, id: 7, discount };
    expect((await agent.listed(agent.head as Operation, listed)).progress.state).toBe('delivered');
  });

  it('a listed coupon with dates in whole seconds is the created coupon, because seconds were sent', async () => {
    await using agent = await createAgent();
    const dated = { ...terms, startAt: agent.now + 1500, endAt: agent.now + minute + 999 };
    await agent.create(lost, { own: dated });
    const listed = agent.theirs({ startAt: agent.now + second, endAt: agent.now + minute });
    expect((await agent.listed(agent.head as Operation, listed)).progress.state).toBe('delivered');
  });

  it('a coupon is conflicted if the list has its code with other terms, and the listed coupon is shown', async () => {
    await using agent = await createAgent();
    await agent.create(lost);
    const head = agent.head as Operation;
    const { coupon } = agent.store.mirror.byCode('Spring') as MirroredCoupon;
    agent.pass(minute);
    const other = agent.theirs({ discount: { type: 'amount', amountOff: 900 } });
    expect((await agent.listed(head, other)).progress.state).toBe('conflicted');
    expect(agent.codes()).toEqual(['7 Spring']);
    expect(agent.store.mirror.get(coupon.id)).toBeNull();
  });

  it.each([
    ['code', { code: 'SPRING' }],
    ['product', { scope: { type: 'single', productKey: 'brush' } }],
    ['scope', { scope: { type: 'multi' } }],
    ['discount', { discount: { type: 'percent', percentOff: 5 } }],
    ['beginning', { startAt: Date.UTC(2026, 1, 2) }],
    ['end', { endAt: null }],
    ['smallest purchase', { minimumPurchaseAmount: 100 }],
    ['usage limit', { usageLimit: null }],
    ['notes', { notes: 'theirs' }],
  ] as const)('a listed coupon with another %s is not the created coupon', async (_, changes) => {
    await using agent = await createAgent();
    const whole = { startAt: Date.UTC(2026, 1, 1), endAt: Date.UTC(2026, 2, 1), notes: 'ours' };
    const own = { ...terms, ...whole, minimumPurchaseAmount: 50, usageLimit: 3 };
    await agent.create(lost, { own });
    const head = agent.head as Operation;
    const listed = { ...own, id: 7, ...changes };
    expect((await agent.listed(head, listed)).progress.state).toBe('conflicted');
  });

  it('a coupon that the list lacks is sent again', async () => {
    await using agent = await createAgent();
    await agent.create(lost);
    const head = agent.head as Operation;
    agent.pass(minute);
    expect((await agent.listed(head, null)).progress).toEqual({
      state: 'pending',
      maybeApplied: false,
      unanswered: false,
    });
    expect(await agent.sendCoupon()).toMatchObject({ id: head.id, attempts: 2 });
  });

  it('a coupon that the upstream refuses is dead and leaves the mirror', async () => {
    await using agent = await createAgent();
    await agent.queue();
    const refused = await agent.answerCoupon(await agent.sendCoupon(), no('refused'));
    expect(refused).toMatchObject({
      lastError: 'no: refused',
      progress: { state: 'dead', cause: 'refused' },
    });
    expect(agent.codes()).toEqual([]);
    expect((await agent.queue()).coupon.id).toBe(-2);
  });

  it.each(['refused', 'rejected', 'missing'] as const)(
    'a coupon is dead if its response is: %s',
    async (reason) => {
      await using agent = await createAgent();
      await agent.queue();
      const answered = await agent.answerCoupon(await agent.sendCoupon(), no(reason));
      expect(answered.progress.state).toBe('dead');
    },
  );

  it('a refused coupon can be requested again under the same idempotency key', async () => {
    await using agent = await createAgent();
    const idempotency = { credential: 'c', key: 'k', fingerprint: 'f' };
    await agent.create(no('refused'), { idempotency });
    expect(agent.store.idempotency.get('c', 'k')).toBeNull();
    await agent.create(
      { outcome: 'applied', value: agent.theirs(), confirmedAt: agent.now, isCached: false },
      { idempotency },
    );
    expect(agent.codes()).toEqual(['7 Spring']);
  });

  it('an uncertain coupon that a person retries is looked for before it is sent again', async () => {
    await using agent = await createAgent();
    await agent.create(lost);
    const { id } = agent.head as Operation;
    const retry = { operationId: id, decision: 'retry' } as const;
    valueOf(await agent.writer.write('decideOperation', retry));
    expect(agent.head).toMatchObject({
      nextAt: agent.monotonic + minute,
      lastError: expect.stringMatching(/is looked for upstream before it is sent again/) as string,
    });
    agent.pass(minute);
    await expect(agent.sendCoupon()).rejects.toThrow('needs read');
    expect((await agent.listed(agent.operation(id), agent.theirs())).progress.state).toBe('delivered');
  });

  it.each([
    ['dead', (agent: CouponHarness, sent: Operation) => agent.answerCoupon(sent, no('refused'))],
    [
      'conflicted',
      async (agent: CouponHarness, sent: Operation) => {
        const maybeApplied = await agent.answerCoupon(sent, lost);
        agent.pass(minute);
        return await agent.listed(maybeApplied, agent.theirs({ scope: { type: 'multi' } }));
      },
    ],
  ] as const)(
    'a coupon that is %s and retried is sent again only if the list lacks it',
    async (state, end) => {
      await using agent = await createAgent();
      await agent.queue();
      const ended = await end(agent, await agent.sendCoupon());
      expect(ended.progress.state).toBe(state);
      valueOf(await agent.writer.write('decideOperation', { operationId: ended.id, decision: 'retry' }));
      await expect(agent.sendCoupon()).rejects.toThrow('needs read');
      await agent.listed(ended, null);
      expect(await agent.sendCoupon()).toMatchObject({ id: ended.id, progress: { maybeApplied: false } });
    },
  );

  it('a coupon that may exist is held when it is refused, and its code stays taken', async () => {
    await using agent = await createAgent();
    await agent.queue();
    valueOf(await agent.writer.write('restore', {}));
    await agent.restart();
    agent.pass(minute);
    await agent.listed(agent.head as Operation, null);
    const sent = await agent.sendCoupon();
    await agent.answerCoupon(sent, no('refused'));
    expect(agent.stateOf(sent.id)).toBe('held');
    const again = { terms, isSentNow: false, maxPending: 10 };
    expect(refusalOf(await agent.writer.write('queueCoupon', again))).toBe('coupon_code_taken');
  });

  it('a coupon waits for the reconcile delay of an earlier request with the same code', async () => {
    await using agent = await createAgent();
    await agent.create(lost);
    const { id } = agent.head as Operation;
    valueOf(await agent.writer.write('decideOperation', { operationId: id, decision: 'drop' }));
    const command = { terms, isSentNow: true, maxPending: 10 };
    const queued = valueOf(await agent.writer.write('queueCoupon', command));
    expect(queued.isSent).toBe(false);
    expect(agent.stateOf(queued.operationId)).toBe('pending');
    await expect(agent.sendCoupon()).rejects.toThrow('needs none');
    agent.pass(minute);
    expect(await agent.sendCoupon()).toMatchObject({ id: queued.operationId });
  });

  it('a coupon that a person drops leaves the mirror, and returns to it when a person retries it', async () => {
    await using agent = await createAgent();
    await agent.queue();
    const { id } = await agent.answerCoupon(await agent.sendCoupon(), no('refused'));
    const decide = async (decision: 'retry' | 'drop') =>
      valueOf(await agent.writer.write('decideOperation', { operationId: id, decision }));
    await decide('retry');
    expect(agent.codes()).toEqual(['-1 Spring']);
    await decide('drop');
    expect(agent.codes()).toEqual([]);
  });

  it.each([
    ['which has not listed it yet', false, lost],
    ['which has listed it already', true, lost],
    ['which had refused it', false, no('refused')],
  ])('a coupon that a person confirms is the coupon of the upstream, %s', async (_, isListed, outcome) => {
    await using agent = await createAgent();
    await agent.queue();
    const cart = buildCart({ productKey: 'press', amount: 1000 });
    valueOf(await agent.writer.write('redeemMirroredCoupon', { accountId: 'default', order: 'o', cart }));
    const { id } = await agent.answerCoupon(await agent.sendCoupon(), outcome);
    const list = async (coupons: Coupon[]): Promise<void> => {
      valueOf(
        await agent.writer.write('mirrorCoupons', { coupons, confirmedAt: agent.now, extent: 'whole' }),
      );
    };
    if (isListed) await list([agent.theirs()]);
    valueOf(await agent.writer.write('decideOperation', { operationId: id, decision: 'confirm' }));
    expect(agent.codes()).toEqual([isListed ? '7 Spring' : '-1 Spring']);
    await list([agent.theirs()]);
    expect(agent.codes()).toEqual(['7 Spring']);
    expect(agent.store.mirror.get(-1)?.coupon.id).toBe(7);
    expect(agent.store.redemptions.countOf('default', 7)).toBe(1);
  });

  it('a coupon that a person confirms is removed if the complete list lacks it; other coupons stay', async () => {
    await using agent = await createAgent();
    await agent.queue();
    await agent.queue({ code: 'Summer' });
    const { id } = await agent.answerCoupon(await agent.sendCoupon(), lost);
    valueOf(await agent.writer.write('decideOperation', { operationId: id, decision: 'confirm' }));
    for (const extent of ['some', 'list', 'whole'] as const) {
      expect(agent.codes()).toEqual(['-2 Summer', '-1 Spring']);
      valueOf(await agent.writer.write('mirrorCoupons', { coupons: [], confirmedAt: agent.now, extent }));
    }
    expect(agent.codes()).toEqual(['-2 Summer']);
  });

  it('a coupon waits while the upstream cannot be reached or asks to wait', async () => {
    await using agent = await createAgent();
    await agent.queue();
    await agent.answerCoupon(await agent.sendCoupon(), no('unreachable'));
    expect(agent.head).toMatchObject({ outage: true, nextAt: agent.monotonic + 500 });
    agent.pass(500);
    await agent.answerCoupon(await agent.sendCoupon(), no('throttled', 30 * second));
    expect(agent.head).toMatchObject({ outage: false, nextAt: agent.monotonic + 30 * second });
  });

  it('a coupon whose response was lost waits as long as the upstream asks if that is longer than the reconcile delay', async () => {
    await using agent = await createAgent();
    await agent.create({ ...lost, retryAfterMs: 5 * minute });
    expect(agent.head).toMatchObject({ nextAt: agent.monotonic + 5 * minute });
  });

  it('a coupon stays queued if it could not be sent for the waiting caller, and is removed if it was refused', async () => {
    await using agent = await createAgent();
    const waiting = await agent.create(no('unreachable'));
    expect(waiting.progress.state).toBe('pending');
    expect(agent.codes()).toEqual(['-1 Spring']);
    await using other = await createAgent();
    await other.create(no('refused'));
    expect(other.head).toBeNull();
    expect(other.codes()).toEqual([]);
  });

  it('a coupon is not answered or found twice', async () => {
    await using agent = await createAgent();
    await agent.queue();
    const operation = await agent.sendCoupon();
    const { id: operationId } = operation;
    const early = { operationId, listed: null, confirmedAt: agent.now };
    expect(refusalOf(await agent.writer.write('recordCouponListing', early))).toBe('operation_not_open');
    await agent.answerCoupon(operation, no('unreachable'));
    const { policy } = agent;
    for (const id of [operationId, 'none']) {
      const answer = { operationId: id, outcome: no('refused'), caller: null, policy };
      expect(refusalOf(await agent.writer.write('recordCouponResponse', answer))).toBe('operation_not_open');
    }
    expect(agent.stateOf(operationId)).toBe('pending');
  });

  it('a coupon in flight at a restart is looked for after the reconcile delay', async () => {
    await using agent = await createAgent();
    await agent.queue();
    await agent.sendCoupon();
    await agent.restart();
    expect(agent.head).toMatchObject({ nextAt: agent.monotonic + minute, progress: { state: 'uncertain' } });
  });
});

describe('the mirror of the upstream', () => {
  it('the mirror keeps coupons until it is told to remove them', async () => {
    await using agent = await createAgent();
    const coupons = [agent.theirs(), agent.theirs({ id: 8, code: 'Autumn' })];
    const at = { confirmedAt: agent.now };
    await agent.writer.write('mirrorCoupons', { coupons, ...at, extent: 'whole' });
    await agent.writer.write('mirrorCoupons', {
      coupons: [agent.theirs({ notes: 'n' })],
      ...at,
      extent: 'some',
    });
    expect(agent.codes()).toEqual(['7 Spring', '8 Autumn']);
    expect(agent.store.mirror.get(7)?.coupon.notes).toBe('n');
    await agent.writer.write('forgetCoupon', { id: 7 });
    expect(agent.codes()).toEqual(['8 Autumn']);
  });
});

describe('a coupon that is sent while its caller waits', () => {
  const once = { credential: 'c', key: 'k', fingerprint: 'f' };

  it('a coupon is committed as in flight before it is sent, so that a killed agent finds it in the list', async () => {
    await using agent = await createAgent();
    const command = { terms, isSentNow: true, maxPending: 10 };
    const { operationId } = valueOf(await agent.writer.write('queueCoupon', command));
    expect(agent.stateOf(operationId)).toBe('in_flight');
    await agent.restart();
    expect(agent.stateOf(operationId)).toBe('uncertain');
    expect(agent.head?.nextAt).toBe(agent.monotonic + minute);
    agent.pass(minute);
    expect((await agent.listed(agent.operation(operationId), agent.theirs())).progress.state).toBe(
      'delivered',
    );
  });

  it('a refused coupon leaves nothing behind, and can be requested again under the same key', async () => {
    await using agent = await createAgent();
    const refused = await agent.create(no('refused'), { idempotency: once });
    expect(refused.progress.state).toBe('cancelled');
    expect(agent.codes()).toEqual([]);
    expect(agent.store.idempotency.get(once.credential, once.key)).toBeNull();
  });

  it('a repeated request for a coupon gets the real coupon', async () => {
    await using agent = await createAgent();
    const value = agent.theirs();
    await agent.create(
      { outcome: 'applied', value, confirmedAt: agent.now, isCached: false },
      { idempotency: once },
    );
    const command = { terms, isSentNow: false, maxPending: 10 };
    const again = valueOf(await agent.writer.write('queueCoupon', command, { idempotency: once }));
    const { operationId } = again;
    expect(again).toEqual({ coupon: value, confirmedAt: agent.now, operationId, isSent: false });
    expect(agent.stateOf(operationId)).toBe('delivered');
    expect(agent.store.idempotency.unchangedCount(once.credential)).toBe(0);
  });

  it('a coupon waits under its provisional id if the upstream could not be reached', async () => {
    await using agent = await createAgent();
    const waiting = await agent.create(no('unreachable'));
    expect(waiting.progress.state).toBe('pending');
    expect(agent.codes()).toEqual(['-1 Spring']);
  });

  it('a coupon can have a code that the mirror already has, because the upstream decides', async () => {
    await using agent = await createAgent();
    const mirrored = { coupons: [agent.theirs()], confirmedAt: agent.now, extent: 'whole' } as const;
    await agent.writer.write('mirrorCoupons', mirrored);
    await agent.create(no('refused'));
    expect(agent.codes()).toEqual(['7 Spring']);
  });
});
