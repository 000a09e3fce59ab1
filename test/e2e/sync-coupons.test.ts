import { expect, test } from 'vitest';
import {
  apiKey,
  codeOf,
  credentials,
  dataOf,
  eventually,
  startHarness,
  startAgentHarness,
  type Agent,
  type AgentHarness,
} from '../support/harness/agent-harness.ts';
import {
  every,
  firstFew,
  loseResponse,
  loseRequest,
  refusal,
  type Fault,
  type LedgerEntryDraft,
} from '../support/harness/plain-upstream.ts';
import type { HttpResponse } from '../support/network/raw-http.ts';

const creates = ({ kind }: LedgerEntryDraft): boolean => kind === 'create_coupon';

function getCoupon({ client }: Agent, id: unknown): Promise<HttpResponse> {
  return client.get(`/api/v2/coupons/${String(id)}`, { headers: credentials });
}

function listCoupons({ client }: Agent): Promise<HttpResponse> {
  return client.get('/api/v2/coupons', { headers: credentials });
}

async function listedCodes(agent: Agent): Promise<unknown[]> {
  const { coupons } = dataOf(await listCoupons(agent)) as { coupons: { code: string }[] };
  return coupons.map(({ code }) => code);
}

function madeUpstream({ upstream }: AgentHarness, code: string): number {
  return upstream.coupons.filter((coupon) => coupon.code === code).length;
}

test.concurrent(
  'a coupon list that was never mirrored is 503, not empty; a mirrored list is answered without the upstream',
  async () => {
    await using harness = await startAgentHarness();
    const { agent, upstream, proxy } = harness;
    const { id } = upstream.addCoupon({ code: 'SPRING', percent_off: 10 });
    await proxy.become({ kind: 'refuse' });
    const unknown = [await listCoupons(agent), await getCoupon(agent, id)];
    expect(unknown.map((answer) => [answer.status, codeOf(answer)])).toEqual(
      unknown.map(() => [503, 'upstream_unreachable']),
    );
    await proxy.become({ kind: 'pass' });
    await eventually(async () => (await listCoupons(agent)).status === 200);
    expect(await listedCodes(agent)).toEqual(['SPRING']);
    await proxy.become({ kind: 'refuse' });
    expect(await listedCodes(agent)).toEqual(['SPRING']);
    const kept = await getCoupon(agent, id);
    expect([kept.status, kept.headers['latchkey-freshness'], dataOf(kept)['percent_off']]).toEqual([
      200,
      'fresh',
      10,
    ]);
  },
);

test.concurrent(
  'one odd coupon at the store leaves the list of the others, which says that one is left out',
  async () => {
    await using harness = await startAgentHarness();
    const { agent, upstream } = harness;
    upstream.addCoupon({ code: 'ODD', percent_off: 5, amount_off: 5 });
    upstream.addCoupon({ code: 'SPRING', percent_off: 10 });
    const answer = await listCoupons(agent);
    expect([answer.status, answer.headers['latchkey-left-out']]).toEqual([200, '1']);
    expect(await listedCodes(agent)).toEqual(['SPRING']);
  },
);

test.concurrent(
  'a stale coupon mirror is refreshed in the background, and drops a coupon only when the coupon itself is 404',
  async () => {
    const freshness = { fresh: '50ms', stale: '1h', grace: '2h' };
    await using harness = await startAgentHarness({ configuration: { freshness } });
    const { agent, upstream } = harness;
    const kept = upstream.addCoupon({ code: 'KEPT', percent_off: 10 });
    const deleted = upstream.addCoupon({ code: 'DELETED', percent_off: 10 });
    expect(await listedCodes(agent)).toEqual(['KEPT', 'DELETED']);
    upstream.addCoupon({ code: 'NEW', percent_off: 10 });
    await eventually(async () => (await listedCodes(agent)).includes('NEW'));

    // The list is empty now, but only one coupon is really deleted.
    const body = JSON.stringify({ data: { coupons: [] } });
    const headers = { 'content-type': 'application/json' };
    const emptyList: Fault = { kind: 'replaced', counted: false, status: 200, headers, body };
    upstream.fault = ({ kind, path }) => {
      if (kind === 'list_coupons') return emptyList;
      return path.endsWith(`/${deleted.id}`) ? refusal(404) : undefined;
    };
    await eventually(async () => !(await listedCodes(agent)).includes('DELETED'));
    expect(await listedCodes(agent)).toEqual(['KEPT', 'NEW']);
    expect((await getCoupon(agent, kept.id)).status).toBe(200);
    expect(codeOf(await getCoupon(agent, deleted.id))).toBe('coupon_not_found');
  },
);

test.concurrent(
  'while the upstream is up, a coupon is created there at once, and refusals of the upstream are passed on',
  async () => {
    await using harness = await startAgentHarness();
    const { agent, upstream } = harness;
    const made = await agent.createCoupon({ code: 'SUMMER', notes: 'for all' });
    expect([made.status, dataOf(made)['id'], made.headers['location']]).toEqual([
      201,
      1,
      '/api/v2/coupons/1',
    ]);
    expect([made.headers['latchkey-freshness'], made.headers['latchkey-pending']]).toEqual(['fresh', '0']);
    expect(upstream.coupons).toMatchObject([{ id: 1, code: 'SUMMER', percent_off: 20, notes: 'for all' }]);

    const taken = await agent.createCoupon({ code: 'SUMMER' });
    expect([taken.status, codeOf(taken)]).toEqual([400, 'upstream_refused']);
    expect(taken.body).toMatchObject({ detail: 'This code is taken' });
    upstream.fault = every(refusal(422, 'The collection does not exist'), creates);
    const refused = await agent.createCoupon({ code: 'AUTUMN' });
    expect([refused.status, codeOf(refused)]).toEqual([422, 'upstream_refused']);
    expect(refused.body).toMatchObject({ detail: 'The collection does not exist' });
    // The refused creation left no operation behind.
    expect(await agent.operations()).toEqual([]);
  },
);

test.concurrent(
  'a coupon created while the upstream is down has a provisional id that still resolves later, even after kill -9',
  async () => {
    await using harness = await startAgentHarness();
    const { agent, upstream, proxy } = harness;
    upstream.addCoupon({ code: 'SPRING', percent_off: 10 });
    await eventually(async () => (await listCoupons(agent)).status === 200);
    await proxy.become({ kind: 'refuse' });
    const headers = { 'idempotency-key': 'create-winter' };
    const made = await agent.createCoupon({ code: 'WINTER' }, headers);
    const provisional = Number(dataOf(made)['id']);
    expect(made.status).toBe(201);
    expect(provisional).toBeLessThan(0);
    expect(made.headers).toMatchObject({
      location: `/api/v2/coupons/${provisional}`,
      'latchkey-freshness': 'provisional',
      'latchkey-pending': '1',
    });
    expect(await listedCodes(agent)).toContain('WINTER');
    const twice = await agent.createCoupon({ code: 'winter' });
    expect([twice.status, codeOf(twice)]).toEqual([409, 'coupon_code_taken']);

    await agent.kill();
    const successor = await harness.startAgent();
    expect(dataOf(await getCoupon(successor, provisional))).toMatchObject({
      id: provisional,
      code: 'WINTER',
    });
    await proxy.become({ kind: 'pass' });
    await successor.atRest();
    expect(madeUpstream(harness, 'WINTER')).toBe(1);
    const known = await getCoupon(successor, provisional);
    expect(known.headers['latchkey-freshness']).toBe('fresh');
    expect(dataOf(known)).toMatchObject({ id: 2, code: 'WINTER', percent_off: 20 });
    expect(dataOf(await getCoupon(successor, 2))).toEqual(dataOf(known));

    // A repeated request gets the first response, and creates nothing twice.
    const again = await successor.createCoupon({ code: 'WINTER' }, headers);
    expect([again.status, dataOf(again)['id']]).toEqual([201, provisional]);
    await successor.atRest();
    expect(madeUpstream(harness, 'WINTER')).toBe(1);
  },
);

for (const [what, fault] of [
  ['response was lost after the coupon was created', loseResponse],
  ['request was lost', loseRequest],
] as const) {
  test.concurrent(`a creation whose ${what} is reconciled by a listing: the coupon exists once`, async () => {
    await using harness = await startAgentHarness();
    const { agent, upstream } = harness;
    upstream.fault = firstFew(1, fault, creates);
    const made = await agent.createCoupon({ code: 'WINTER', usage_limit: '5', notes: 'once' });
    expect([made.status, made.headers['latchkey-freshness']]).toEqual([201, 'provisional']);
    await agent.atRest();
    // A first list shows what kind of upstream this is.
    const sent = upstream.ledger.findIndex(creates);
    const [creation, next] = upstream.ledger
      .slice(sent)
      .filter(({ kind }) => kind === 'list_coupons' || kind === 'create_coupon');
    expect(next?.kind).toBe('list_coupons');
    // The listing waits for the reconcile delay.
    expect((next?.at ?? 0) - (creation?.at ?? 0)).toBeGreaterThanOrEqual(340);
    expect(madeUpstream(harness, 'WINTER')).toBe(1);
    expect(dataOf(await getCoupon(agent, dataOf(made)['id']))).toMatchObject({ id: 1, usage_limit: 5 });
    expect(await agent.operations('delivered')).toMatchObject([{ kind: 'create_coupon' }]);
  });
}

test.concurrent(
  'a code that another coupon took meanwhile is a conflict: it is shown to people and never sent again',
  async () => {
    await using harness = await startAgentHarness();
    const { agent, upstream } = harness;
    upstream.fault = (request) => {
      if (!creates(request) || upstream.coupons.length > 0) return undefined;
      upstream.addCoupon({ code: 'WINTER', percent_off: 90 });
      return loseRequest;
    };
    const made = await agent.createCoupon({ code: 'WINTER' });
    await eventually(async () => (await agent.status()).outbox.conflicted === 1);
    expect(await agent.operations('conflicted')).toMatchObject([
      { kind: 'create_coupon', last_error: 'the upstream has another coupon with this code' },
    ]);
    expect(codeOf(await getCoupon(agent, dataOf(made)['id']))).toBe('coupon_not_found');
    expect(dataOf(await getCoupon(agent, 1))).toMatchObject({ code: 'WINTER', percent_off: 90 });
    expect(upstream.ledger.filter(creates)).toHaveLength(1);
  },
);

test.concurrent('without an upstream API key, coupons are 501 and licenses work as before', async () => {
  await using harness = await startHarness({ licenses: ['LICENSE-1'] });
  const agent = await harness.startAgent({ upstream: { api_key: null } });
  await agent.learn(['LICENSE-1']);
  const headers = agent.admin;
  const form = { coupon_type: 'multi', percent_off: '20', code: 'WINTER' };
  const answers = [
    await agent.client.get('/api/v2/coupons', { headers }),
    await agent.client.get('/api/v2/coupons/1', { headers }),
    await agent.client.post('/api/v2/coupons', { headers, form }),
  ];
  expect(answers.map((answer) => [answer.status, codeOf(answer)])).toEqual(
    answers.map(() => [501, 'coupons_not_configured']),
  );
});

test.concurrent(
  'an API key that the upstream refuses pauses only coupons, and the right key resumes them',
  async () => {
    await using harness = await startHarness({ licenses: ['LICENSE-1'] });
    const { upstream, proxy } = harness;
    const agent = await harness.startAgent();
    await agent.learn(['LICENSE-1']);
    expect(await listedCodes(agent)).toEqual([]);
    await proxy.become({ kind: 'refuse' });
    expect((await agent.createCoupon({ code: 'WINTER' })).status).toBe(201);
    upstream.rotateApiKey('another-key');
    await proxy.become({ kind: 'pass' });
    const line = await agent.process.said('the upstream refuses our credential');
    expect(line).toMatchObject({ coupons: true, error: 'HTTP 401: Wrong API key' });
    await agent.change('usage', 'LICENSE-1');
    await upstream.until(() => upstream.license('LICENSE-1').uses === 1);
    const refused = await agent.createCoupon({ code: 'SUMMER' });
    expect([refused.status, codeOf(refused)]).toEqual([503, 'upstream_unreachable']);
    expect(await listedCodes(agent)).toEqual(['WINTER']);
    const knocks = upstream.ledger.filter(({ answered }) => answered === 'status:401').length;
    expect(knocks).toBeLessThanOrEqual(2);

    await harness.reconfigure({ upstream: { api_key: 'another-key' } });
    await agent.atRest();
    expect(madeUpstream(harness, 'WINTER')).toBe(1);
    // Callers can use the new key as well.
    const headers = { 'service-api-key': 'another-key' };
    expect((await agent.client.get('/api/v2/coupons', { headers })).status).toBe(200);
    expect(
      (await agent.client.get('/api/v2/coupons', { headers: { 'service-api-key': apiKey } })).status,
    ).toBe(401);
  },
);

test.concurrent(
  'a coupon that an agent below another agent creates while both are offline exists in both once the store is back',
  async () => {
    await using harness = await startAgentHarness();
    const { agent: above, proxy } = harness;
    const base_url = above.process.tcp;
    const freshness = { fresh: '50ms', stale: '1h', grace: '2h' };
    await using lower = await startAgentHarness({ configuration: { upstream: { base_url }, freshness } });
    const { agent: below } = lower;
    await eventually(async () => (await listCoupons(below)).status === 200);
    await proxy.become({ kind: 'refuse' });
    const made = await below.createCoupon({ code: 'CHAINED' });
    expect([made.status, dataOf(made)['id']]).toEqual([201, -1]);
    expect(await listedCodes(above)).toEqual(['CHAINED']);
    expect(await listedCodes(below)).toEqual(['CHAINED']);
    await below.atRest();
    await proxy.become({ kind: 'pass' });
    await above.atRest();
    const [real] = harness.upstream.coupons;
    expect(madeUpstream(harness, 'CHAINED')).toBe(1);
    // The agent below learns the id as soon as its mirror is refreshed.
    await eventually(async () => {
      expect(await listedCodes(below)).toEqual(['CHAINED']);
      return dataOf(await getCoupon(below, -1))['id'] === real?.id;
    });
  },
);
