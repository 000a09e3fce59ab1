import type { FastifyInstance } from 'fastify';
import * as fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { syncControl } from '../../src/daemon/role/agent.ts';
import { dialectNames, type DialectName } from '../../src/domain/header-names.ts';
import { dialects } from '../support/stores/dialects.ts';
import { agentLicenseService } from '../../src/service/agent/license.ts';
import { lastProductName } from '../../src/service/agent/products.ts';
import { StorageError, type StorageFault } from '../../src/service/ports.ts';
import type { Status } from '../../src/service/status.ts';
import { adminToken, authorityStatus, openApp, serverOf, type TestApp } from '../support/app/http-app.ts';
import { StepsAfterCommit } from '../support/app/steps-after-commit.ts';
import { patienceMs } from '../support/patience.ts';
import { silent } from '../support/silent-log.ts';
import { buildOperation } from '../support/builders/operation-builders.ts';
import { startSyncHarness, minute, second, type SyncHarness } from '../support/harness/sync-harness.ts';

const operator = { authorization: `Bearer ${adminToken}` };
const faults: readonly StorageFault[] = ['full', 'failed', 'commit_failed', 'unavailable', 'unknown'];
const freshness = {
  freshMs: 24 * 60 * minute,
  staleMs: 48 * 60 * minute,
  graceMs: 96 * 60 * minute,
  expiryGraceMs: 24 * 60 * minute,
};

/** An agent with an upstream in memory, whose steps after a commit can fail. */
class Agent implements AsyncDisposable {
  readonly steps: StepsAfterCommit = new StepsAfterCommit();
  readonly harness: SyncHarness;
  readonly #test: TestApp;
  readonly #server: FastifyInstance;

  constructor(harness: SyncHarness, opened: TestApp, dialect: DialectName) {
    this.harness = harness;
    this.#test = opened;
    const { steps } = this;
    const reader = steps.watch(harness.store);
    const writer = steps.writer(harness.writer);
    this.#server = serverOf({
      ...opened.app,
      dialect: dialects[dialect],
      writer,
      licenseService: agentLicenseService({
        reader,
        writer,
        clock: harness.time.clock(),
        log: silent,
        fetcher: harness.sync.fetcher,
        deliveries: steps.watch(harness.sync.delivery),
        productIds: () => ['press'],
        settings: () => ({
          freshness,
          maxPending: 1_000,
          unknownMs: 0,
          timeoutMs: 10 * second,
          refreshMs: 360 * minute,
        }),
      }),
      sync: syncControl({ reader, writer }, harness.sync),
      status: steps.watch({ read: (): Status => authorityStatus }).read,
      productName: (productKey) => lastProductName(reader, productKey),
    });
  }

  async send(path: string, payload: object, headers: Record<string, string> = {}) {
    const method = path.startsWith('/api') ? 'PUT' : 'POST';
    const answer = this.#server
      .inject({ method, url: path, headers: { ...operator, ...headers }, payload })
      .then(({ statusCode, body }) => ({ statusCode, body }));
    let isDone = false;
    void answer.finally(() => (isDone = true));
    // Virtual time may pass only after the request has left the HTTP server, which runs in real time.
    await vi.waitUntil(() => isDone || this.steps.isCommitted, { timeout: patienceMs, interval: 1 });
    await this.harness.time.runUntil(() => isDone, minute);
    return await answer;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.close();
    await this.#test[Symbol.asyncDispose]();
    this.harness[Symbol.dispose]();
  }
}

async function openAgent(dialect: DialectName): Promise<Agent> {
  const harness = await startSyncHarness(['KEY']);
  await harness.verify('KEY');
  return new Agent(harness, await openApp({ role: 'agent' }), dialect);
}

/** The change, the failing step after its commit, and the error. */
type Failure = {
  kind: (typeof kinds)[number];
  index: number;
  fault: StorageFault;
  waitS: number;
  isKeyed: boolean;
};

const kinds = ['usage', 'decrease', 'disable', 'enable'] as const;

test.each(dialectNames)(
  'a committed change on an agent is answered with a success whichever later step fails (%s)',
  async (dialect) => {
    await using agent = await openAgent(dialect);
    const failure: fc.Arbitrary<Failure> = fc.record({
      kind: fc.constantFrom(...kinds),
      index: fc.nat({ max: 6 }),
      fault: fc.constantFrom(...faults),
      waitS: fc.constantFrom(0, 5),
      isKeyed: fc.boolean(),
    });
    let made = 0;
    await fc.assert(
      fc.asyncProperty(failure, async ({ kind, index, fault, waitS, isKeyed }) => {
        made += 1;
        const headers = {
          ...(waitS > 0 && { prefer: `wait=${waitS}` }),
          ...(isKeyed && { 'idempotency-key': `change-${made}` }),
        };
        const path = `/api/v2/license/${kind}`;
        agent.steps.arm({ index, error: new StorageError(fault, null) });
        const answer = await agent.send(path, { license_key: 'KEY' }, headers);
        expect(agent.steps.isCommitted).toBe(true);
        expect(answer.statusCode, answer.body).toBe(200);
        agent.steps.arm(null);
        const again = isKeyed ? await agent.send(path, { license_key: 'KEY' }, headers) : answer;
        expect(licenseIn(again.body)).toEqual(licenseIn(answer.body));
      }),
      {
        numRuns: 200,
        endOnFailure: true,
        examples: kinds.flatMap((kind) =>
          [0, 1, 2, 3, 4].map((index): [Failure] => [
            { kind, index, fault: 'full', waitS: 5, isKeyed: true },
          ]),
        ),
      },
    );
  },
);

function licenseIn(body: string): unknown {
  return (JSON.parse(body) as { data: unknown }).data;
}

const madeButUnread: unknown = expect.stringContaining('The change was made');

test.each(['now', 'pause', 'resume'])(
  'after sync/%s is committed, no response says that nothing was changed, whichever later step fails',
  async (act) => {
    await using agent = await openAgent('specification');
    for (const fault of faults) {
      for (const index of [0, 1, 2]) {
        agent.steps.arm({ index, error: new StorageError(fault, null) });
        const key = { 'idempotency-key': `${fault}-${index}` };
        const { statusCode, body } = await agent.send(`/admin/v1/sync/${act}`, {}, key);
        expect(agent.steps.isCommitted).toBe(true);
        expect([
          [200, expect.any(String)],
          [500, madeButUnread],
        ]).toContainEqual([statusCode, body]);
        expect(agent.harness.sync.limiter.status().state === 'paused').toBe(act === 'pause');
      }
    }
  },
);

test('a decision succeeds even if the explanation of its operation cannot be read afterwards', async () => {
  await using opened = await openApp({
    role: 'agent',
    explain: () => {
      throw new StorageError('unavailable', null);
    },
  });
  opened
    .agentTables()
    .operations.add(buildOperation({ id: 'dead', progress: { state: 'dead', cause: 'refused' } }));
  const answer = await serverOf(opened.app).inject({
    method: 'POST',
    url: '/admin/v1/outbox/dead/drop',
    headers: operator,
  });
  expect(opened.agentTables().operations.get('dead')?.progress.state).toBe('dropped');
  expect([answer.statusCode, answer.json()]).toEqual([
    500,
    expect.objectContaining({ detail: madeButUnread }),
  ]);
});
