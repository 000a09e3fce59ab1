import { createHash } from 'node:crypto';
import type { Dispatcher } from 'undici';
import { instanceHeader } from '../../../../src/domain/header-names.ts';
import type { LicenseOperationKind } from '../../../../src/domain/outbox/operation.ts';
import { failWith, type Problem, type Result } from '../../../../src/domain/problem/problem.ts';
import {
  apiKeyScopes,
  productSecretScopes,
  type Principal,
  type Tenant,
} from '../../../../src/domain/access/principal.ts';
import type { App } from '../../../../src/http/app.ts';
import type { Route } from '../../../../src/http/route.ts';
import { syncV1Routes } from '../../../../src/http/routes/sync-v1.ts';
import { isFailure } from '../../../../src/service/access/records.ts';
import { runUseCase } from '../../../../src/service/run.ts';
import { authorityStore, StoreSyncServer } from '../../../../src/service/sync/server.ts';
import { WaitingAgents } from '../../../../src/service/sync/waiting.ts';
import {
  ChangeFeed,
  type CommandOf,
  type CommandResult,
  type UseCaseName,
  type Writer,
} from '../../../../src/service/writer.ts';
import { localWriter } from '../../../../src/store/sqlite/local-writer.ts';
import { serializeLicense } from '../../../../src/wire/license.ts';
import { serializeProblem } from '../../../../src/wire/response.ts';
import type { VirtualClock } from '../../../support/harness/virtual-clock.ts';
import { silent } from '../../../support/silent-log.ts';
import { readRequest, type LedgerEvent, type Reply } from '../ledger.ts';
import { Machine } from '../machine.ts';
import { CouponBook } from './coupon-book.ts';
import { answerCoupons } from './plain-coupons.ts';
import type { Uuid7Random } from './random.ts';

export const productKey = 'PRESS';
const tenant = { accountId: 'default', productKey };
const nobody = { actor: null, requestId: null, idempotency: null };

/** A change of a license that arrived by the plain API: its operation, if an agent has sent it. */
export type PlainArrival = { operation: string | null; key: string; event: LedgerEvent };

type Backup = { bytes: Uint8Array; arrivals: readonly PlainArrival[]; book: CouponBook };

type CouponChange =
  'createCoupon' | 'updateCoupon' | 'endCoupon' | 'deleteCoupon' | 'redeemCoupon' | 'voidRedemption';

/** An answer, and the headers that only the authority sends. */
export type OwnReply = Reply & { headers: Record<string, string> };

/** Corruptions of an authority. */
export type AuthoritySabotage = {
  writer?: (writer: Writer, machine: Machine) => Writer;
  /** A restore that gives the store no new epoch and no new instance. */
  restoresSilently?: boolean;
};

/** A real authority: its use cases, its tables on SQLite in memory, and `/sync/v1`. */
export class SimulatedAuthority implements Disposable {
  /** The secret of the product. */
  secret = 'secret 1';
  /** The API key of the account; null: it is not accepted. */
  apiKey: string | null = null;
  /** What arrived by the plain API. */
  arrivals: PlainArrival[] = [];
  book: CouponBook = new CouponBook();
  instance = '';
  restores = 0;
  machine: Machine = new Machine();
  readonly #clock: VirtualClock;
  readonly #random: Uuid7Random;
  readonly #sabotage: AuthoritySabotage;
  #writer: Writer;
  #changes: ChangeFeed;
  #server: StoreSyncServer;
  /** Aborts when the process ends. */
  #lifetime = new AbortController();
  #backup: Backup | null = null;

  constructor(clock: VirtualClock, random: Uuid7Random, sabotage: AuthoritySabotage = {}) {
    this.#clock = clock;
    this.#random = random;
    this.#sabotage = sabotage;
    ({ writer: this.#writer, changes: this.#changes, server: this.#server } = this.#process());
  }

  async begin(keys: ReadonlyMap<string, number>): Promise<void> {
    await this.#start('digest of the key');
    const { secret } = this;
    const product = { name: 'Press', recurring: false, accountId: 'default', productKey, secret };
    await this.#write('addProduct', product);
    for (const [licenseKey, uses] of keys) {
      const sale = {
        productKey,
        buyerEmail: 'buyer@example.com',
        licenseKey,
        soldAt: 0,
        uses,
        enabled: true,
      };
      await this.#write('addPurchase', sale);
    }
  }

  license(key: string): { uses: number; enabled: boolean } {
    const license = this.machine.transaction.licenses.get(key);
    if (license === null) throw new Error(`there is no ${key}`);
    return license;
  }

  /** How many agents have pushed. */
  get agents(): number {
    const row = this.machine.database
      .prepare('SELECT count(DISTINCT agent_id) AS agents FROM sync_agent WHERE seq > 0')
      .get();
    return Number(row?.['agents']);
  }

  /** The operations that pushes have carried out. */
  appliedByPush(): Set<string> {
    const rows = this.machine.database
      .prepare("SELECT id FROM sync_operation WHERE outcome = 'applied'")
      .all();
    return new Set(rows.map(({ id }) => String(id)));
  }

  async changeElsewhere(key: string, event: LedgerEvent): Promise<void> {
    const trigger = event === 'refund' ? 'disable' : event;
    await this.#write('changeLicense', { tenant, licenseKey: key, trigger });
    this.arrivals.push({ operation: null, key, event });
  }

  /** The seller, or another program, changes coupons. */
  async changeCoupons<Name extends CouponChange>(
    name: Name,
    command: CommandOf<Name>,
  ): Promise<CommandResult<Name>> {
    return await this.#write(name, command);
  }

  /** Removes all outcomes from before an instant, as maintenance does. */
  async prune(before: number): Promise<void> {
    for (let removed = Infinity; removed > 0;) {
      const pruned = await this.#write('pruneSync', { before, limit: 1_000 });
      removed = pruned.ok ? pruned.value.removed : 0;
    }
  }

  backUp(): void {
    this.#backup = { bytes: this.machine.backup(), arrivals: [...this.arrivals], book: this.book.clone() };
  }

  /** The process ends, and another one starts. */
  async restart(): Promise<void> {
    this.#lifetime.abort();
    this.#server.stopWaiting();
    this.#lifetime = new AbortController();
    ({ writer: this.#writer, changes: this.#changes, server: this.#server } = this.#process());
    await this.#start(null);
  }

  /** False: there is no backup. */
  async restore(): Promise<boolean> {
    if (this.#backup === null) return false;
    this.#lifetime.abort();
    this.#server.stopWaiting();
    this.machine[Symbol.dispose]();
    this.machine = new Machine(1, this.#backup.bytes);
    this.arrivals = [...this.#backup.arrivals];
    this.book = this.#backup.book.clone();
    this.restores += 1;
    ({ writer: this.#writer, changes: this.#changes, server: this.#server } = this.#process());
    if (this.#sabotage.restoresSilently !== true) await this.#write('restore', {});
    this.#lifetime = new AbortController();
    await this.#start(null);
    return true;
  }

  /** Rolls the secret of the product, and the API key. */
  roll(): void {
    this.secret = `secret ${Number(this.secret.slice(7)) + 1}`;
    if (this.apiKey !== null) this.apiKey = `key of ${this.secret}`;
    this.machine.transaction.products.setSecretDigest(productKey, digest(this.secret));
  }

  /** Answers a request; null: the process ended meanwhile. */
  async handle(
    request: Dispatcher.DispatchOptions,
    operation: string | null,
    signal: AbortSignal,
  ): Promise<OwnReply | null> {
    const { signal: lifetime } = this.#lifetime;
    const path = new URL(request.path, 'http://authority.invalid').pathname;
    try {
      const reply = await this.#answer(request, { path, operation }, AbortSignal.any([signal, lifetime]));
      if (lifetime.aborted) return null;
      return { ...reply, headers: { [instanceHeader.toLowerCase()]: this.instance } };
    } catch (error) {
      // The store of a process that ended was closed.
      if (lifetime.aborted) return null;
      throw error;
    }
  }

  [Symbol.dispose](): void {
    this.#lifetime.abort();
    this.#server.stopWaiting();
    this.machine[Symbol.dispose]();
  }

  #process(): { writer: Writer; changes: ChangeFeed; server: StoreSyncServer } {
    const { machine } = this;
    const reader = machine.transaction;
    const changes = new ChangeFeed();
    const clock = this.#clock;
    const random = this.#random;
    const honest = localWriter(machine, {
      run: runUseCase,
      isFailure,
      context: () => ({
        now: clock.now(),
        monotonic: clock.monotonic(),
        random,
        digest,
        recordsHistory: false,
      }),
    });
    const writer = this.book.keep(this.#sabotage.writer?.(honest, machine) ?? honest);
    const nextTurn = (): Promise<void> => Promise.resolve();
    const waiting = new WaitingAgents({ reader, changes, clock, log: silent, nextTurn });
    const count = (): void => undefined;
    const newFollowers = { take: () => 0 };
    const store = authorityStore({ reader, writer, clock });
    const server = new StoreSyncServer({ reader, store, waiting, clock, random, newFollowers, count });
    return { writer, changes, server };
  }

  async #start(apiKeyDigest: string | null): Promise<void> {
    const started = await this.#write('startAuthority', {
      adminTokenDigest: 'token',
      place: 'here',
      apiKeyDigest,
    });
    if (!started.ok) throw new Error(started.problem.detail);
    ({ instance: this.instance } = started.value);
  }

  async #write<Name extends UseCaseName>(name: Name, command: CommandOf<Name>): Promise<CommandResult<Name>> {
    const result: CommandResult<Name> = await this.#writer.write(name, command, nobody);
    this.#changes.announce(['anything']);
    return result;
  }

  #answer(
    request: Dispatcher.DispatchOptions,
    { path, operation }: { path: string; operation: string | null },
    signal: AbortSignal,
  ): Promise<Reply> {
    const ofRequest = this.#tenantOf(request);
    if (ofRequest === null) return Promise.resolve(unauthorized);
    if (path.startsWith('/sync/v1')) return this.#handleSync(request, { path, ofRequest }, signal);
    if (path.startsWith('/api/v2/license')) return this.#handlePlain(request, operation);
    return answerCoupons(request, this.machine.transaction, (terms) =>
      this.#write('createCoupon', { accountId: 'default', terms }),
    );
  }

  async #handleSync(
    request: Dispatcher.DispatchOptions,
    { path, ofRequest }: { path: string; ofRequest: Tenant },
    signal: AbortSignal,
  ): Promise<Reply> {
    const route = syncV1Routes.find((each) => each.path === path && each.method === request.method);
    if (route === undefined) return refusal(failWith('license_not_found', 'no such route').problem);
    const text = typeof request.body === 'string' ? request.body : '{}';
    const handled = await this.#run(route, { text, ofRequest }, signal);
    this.#changes.announce(['anything']);
    return handled;
  }

  async #run(
    route: Route,
    { text, ofRequest }: { text: string; ofRequest: Tenant },
    signal: AbortSignal,
  ): Promise<Reply> {
    const raw = new Map(
      Object.entries(JSON.parse(text) as Record<string, unknown>).filter(([, member]) => member !== null),
    );
    const body = route.body?.read(raw);
    if (body?.ok === false)
      throw new Error(`the agent sent what is not valid: ${JSON.stringify(body.faults)}`);
    const principal: Principal = {
      credential: 'any',
      isOperator: false,
      tenant: ofRequest,
      scopes: ofRequest.productKey === null ? apiKeyScopes : productSecretScopes,
    };
    const app = { syncServer: this.#server, instance: this.instance } as unknown as App;
    const handled = (await route.handle({
      app,
      principal,
      body: body?.values,
      bodyDigest: digest(text),
      writeOptions: nobody,
      signal,
    } as never)) as Result<{ status: number; body: unknown }>;
    if (!handled.ok) return refusal(handled.problem);
    return { status: handled.value.status, body: handled.value.body as Record<string, unknown> };
  }

  async #handlePlain(request: Dispatcher.DispatchOptions, operation: string | null): Promise<Reply> {
    const { what, subject } = readRequest(request);
    if (what === 'list_coupons' || what === 'create_coupon' || what === 'get_coupon')
      throw new Error('coupons have an answer of their own');
    const license = this.machine.transaction.licenses.get(subject);
    if (license === null) return refusal(failWith('license_not_found', 'There is none.').problem);
    if (what === 'verify') return { status: 200, body: { data: serializeLicense(license) } };
    const trigger = what as LicenseOperationKind;
    const changed = await this.#write('changeLicense', { tenant, licenseKey: subject, trigger });
    if (!changed.ok) return refusal(changed.problem);
    this.arrivals.push({ operation, key: subject, event: what });
    return { status: 200, body: { data: serializeLicense(changed.value) } };
  }

  /** What the credential of a request gives access to; null: nothing. */
  #tenantOf({ headers }: Dispatcher.DispatchOptions): Tenant | null {
    const sent = headers as Record<string, string>;
    if (sent['product-secret-key'] === this.secret) return tenant;
    const isApiKey = this.apiKey !== null && sent['service-api-key'] === this.apiKey;
    return isApiKey ? { ...tenant, productKey: null } : null;
  }
}

const unauthorized: Reply = { status: 401, body: { error: 'who are you?' } };

function refusal(problem: Problem): Reply {
  const body = serializeProblem(problem, 'request') as unknown as Record<string, unknown>;
  return { status: Number(body['status']), body };
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
