import { deepStrictEqual as equal, ok } from 'node:assert';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../../../support/harness/agent-harness.ts';
import type { Nodes, AuthorityNode } from './node-processes.ts';
import { firstUses, Ledger, redemptionLimit, redemptionsOf, type Told } from './ledger.ts';
import type { HttpResponse } from '../../../support/network/raw-http.ts';

const secret = 'the-secret-of-the-press';
const callersPerNode = 16;
const manyKeys = ['MANY-1', 'MANY-2', 'MANY-3'];
const hotKeys = ['HOT-1', 'HOT-2', 'HOT-3'];
const usedOnce = 50_000;
/** The delay before a caller's retry, in ms. */
const againMs = 50;

type Data = Readonly<Record<string, unknown>>;
type Send = (node: AuthorityNode, headers: Readonly<Record<string, string>>) => Promise<HttpResponse>;

function dataOf({ body }: HttpResponse): Data {
  return (body as { data: Data }).data;
}

function codeOf({ body }: HttpResponse): string {
  return String((body as { code?: unknown }).code);
}

/** Fills the catalogue with the objects that callers change. */
async function openShop({ all: [node], database }: Nodes, name: string): Promise<void> {
  if (node === undefined) throw new Error('there is no node');
  const { http, admin: headers } = node;
  const product = { name: 'Press', product_key: `${name}-PRESS`, secret: `${secret}-${name}` };
  equal((await http.post('/admin/v1/products', { headers, json: product })).status, 201);
  const editor = { name: 'Editor', product_key: `${name}-EDITOR`, secret: `${secret}-of-${name}` };
  equal((await http.post('/admin/v1/products', { headers, json: editor })).status, 201);
  const terms = { code: `${name}-LIMITED`, coupon_type: 'multi', percent_off: 10 };
  const coupon = { ...terms, usage_limit: redemptionLimit };
  equal((await http.post('/api/v2/coupons', { headers, json: coupon })).status, 201);
  await database.query(
    `INSERT INTO ${database.names.of('license')} (license_key, product_key, buyer_email, uses, enabled, created_at)
      SELECT $1 || key, $1 || 'EDITOR', 'a@example.com', CASE WHEN key LIKE 'HOT-%' THEN $2::bigint ELSE 0 END, true, 0
      FROM unnest($3::text[]) AS key
      UNION ALL SELECT $1 || 'ONCE-' || number, $1 || 'EDITOR', 'a@example.com', 0, true, 0
      FROM generate_series(1, $4::bigint) AS number`,
    [`${name}-`, firstUses, ['COUNTED', ...hotKeys, ...manyKeys], usedOnce],
  );
}

/** A caller that uses the nodes of an authority, and writes the responses to a ledger. */
class Caller {
  readonly #nodes: readonly AuthorityNode[];
  readonly #ledger: Ledger;
  #turn: number;
  /** The index of the node of the last request. */
  #place: number;
  readonly #orders: string[] = [];
  readonly #purchases: string[] = [];

  constructor(nodes: readonly AuthorityNode[], ledger: Ledger, turn: number) {
    this.#nodes = nodes;
    this.#ledger = ledger;
    this.#turn = turn;
    this.#place = turn;
  }

  /** Sends one request after the other as long as it is wanted. */
  async work(isWanted: () => boolean): Promise<void> {
    const acts = [
      () => this.#count(),
      () => this.#useOnce(),
      () => this.#change('usage', 1),
      () => this.#useByMany(),
      () => this.#change('decrease', -1),
      () => this.#redeem(),
      () => this.#count(),
      () => this.#sell(),
      () => this.#useOnce(),
      () => this.#change(this.#turn % 2 === 0 ? 'disable' : 'enable', 0),
      () => this.#void(),
      () => this.#createCoupon(),
      () => this.#refund(),
    ];
    while (isWanted()) {
      await acts[this.#turn % acts.length]?.();
      this.#turn += 1;
    }
  }

  async #count(): Promise<void> {
    const answer = await this.#persist(this.#changeOf('usage', 'COUNTED'));
    this.#ledger.counted.push(Number(dataOf(answer)['uses']));
  }

  async #change(verb: 'usage' | 'decrease' | 'enable' | 'disable', uses: number): Promise<void> {
    const key = hotKeys[this.#turn % hotKeys.length] ?? '';
    equal((await this.#persist(this.#changeOf(verb, key))).status, 200);
    this.#ledger.noteChange(this.#named(key), uses);
  }

  async #useOnce(): Promise<void> {
    const key = `ONCE-${this.#ledger.usedOnce.size + 1}`;
    this.#ledger.usedOnce.set(this.#named(key), 'unknown');
    this.#ledger.usedOnce.set(this.#named(key), await this.#try(this.#changeOf('usage', key)));
  }

  async #useByMany(): Promise<void> {
    const key = manyKeys[this.#turn % manyKeys.length] ?? '';
    this.#ledger.noteUse(this.#named(key), await this.#try(this.#changeOf('usage', key)));
  }

  async #sell(): Promise<void> {
    const json = { product_key: this.#named('PRESS'), buyer_email: 'a@example.com' };
    // Each node has its own admin token, but for idempotency they are the same admin.
    const answer = await this.#persist(({ http, admin }, headers) =>
      http.post('/admin/v1/purchases', { headers: { ...headers, ...admin }, json }),
    );
    equal(answer.status, 201);
    const { purchase_id: id, license } = dataOf(answer) as { purchase_id: string; license: Data };
    this.#ledger.purchases.set(id, { licenseKey: String(license['license_key']), isRefunded: false });
    this.#purchases.push(id);
  }

  async #refund(): Promise<void> {
    if (this.#purchases.length < 2) return;
    const id = this.#purchases.shift() ?? '';
    const answer = await this.#persist(({ http, admin }, headers) =>
      http.post(`/admin/v1/purchases/${id}/refund`, { headers: { ...headers, ...admin } }),
    );
    equal(answer.status, 200);
    const sold = this.#ledger.purchases.get(id);
    if (sold !== undefined) this.#ledger.purchases.set(id, { ...sold, isRefunded: true });
  }

  /** Creates a coupon whose code another caller wants about half of the time. */
  async #createCoupon(): Promise<void> {
    const code = this.#named(`C-${this.#turn}`);
    const json = { code, coupon_type: 'multi', percent_off: 10 };
    const answer = await this.#persist(({ http, admin }, headers) =>
      http.post('/api/v2/coupons', { headers: { ...headers, ...admin }, json }),
    );
    if (answer.status === 409) {
      equal(codeOf(answer), 'coupon_code_taken');
      return;
    }
    equal([answer.status, this.#ledger.coupons.has(code)], [201, false]);
    this.#ledger.coupons.set(code, Number(dataOf(answer)['id']));
  }

  async #redeem(): Promise<void> {
    const order = this.#named(randomUUID());
    const items = [{ product_key: this.#named('EDITOR'), amount: 1_000 }];
    const json = { order, code: this.#named('LIMITED'), items };
    const answer = await this.#persist(({ http, admin }, headers) =>
      http.post('/agent/v1/redemptions', { headers: { ...headers, ...admin }, json }),
    );
    if (answer.status === 409) {
      equal(codeOf(answer), 'coupon_not_redeemable');
      this.#ledger.usedUp += 1;
      return;
    }
    ok([200, 201].includes(answer.status));
    this.#ledger.redeemed += 1;
    this.#ledger.orders.add(order);
    this.#orders.push(order);
  }

  async #void(): Promise<void> {
    const order = this.#orders.shift();
    if (order === undefined) return;
    const answer = await this.#persist(({ http, admin }, headers) =>
      http.delete(`/agent/v1/redemptions/${order}`, { headers: { ...headers, ...admin } }),
    );
    equal(answer.status, 204);
    this.#ledger.orders.delete(order);
  }

  #named(name: string): string {
    return `${this.#ledger.name}-${name}`;
  }

  #changeOf(verb: string, key: string): Send {
    const form = { license_key: this.#named(key) };
    const own = { 'product-secret-key': `${secret}-of-${this.#ledger.name}` };
    return ({ http }, headers) =>
      http.put(`/api/v2/license/${verb}`, { headers: { ...headers, ...own }, form });
  }

  /** Sends a request once, without an idempotency key; returns whether it was applied. */
  async #try(send: Send): Promise<Told> {
    const answer = await this.#ask(send, {});
    if (answer === null) return 'unknown';
    if (answer.status === 200) return 'done';
    equal(answer.status, 503);
    return codeOf(answer) === 'outcome_unknown' ? 'unknown' : 'undone';
  }

  /**
   * Retries a request under one idempotency key until it is answered, each time at another node; sometimes
   * repeats it afterwards.
   */
  async #persist(send: Send): Promise<HttpResponse> {
    const headers = { 'idempotency-key': randomUUID() };
    const answer = await this.#answered(send, headers);
    if (this.#turn % 4 === 0 && answer.status < 300) {
      const again = await this.#answered(send, headers);
      equal([again.status, again.body], [answer.status, answer.body]);
      this.#ledger.repeated += 1;
    }
    return answer;
  }

  async #answered(send: Send, headers: Readonly<Record<string, string>>): Promise<HttpResponse> {
    for (;;) {
      const answer = await this.#ask(send, headers);
      if (answer !== null && answer.status !== 503 && codeOfRefusal(answer) !== 'idempotency_key_in_use') {
        return answer;
      }
      await sleep(againMs);
    }
  }

  /** Null: there was no response. Throws for a response that no caller may get. */
  async #ask(send: Send, headers: Readonly<Record<string, string>>): Promise<HttpResponse | null> {
    this.#place += 1;
    const node = this.#nodes[this.#place % this.#nodes.length];
    if (node === undefined) throw new Error('there is no node');
    let answer: HttpResponse;
    try {
      answer = await send(node, headers);
    } catch (error) {
      this.#ledger.noteWrong(`without an answer (${(error as NodeJS.ErrnoException).code})`);
      return null;
    }
    const { status } = answer;
    if (status < 500 && codeOfRefusal(answer) !== 'idempotency_key_in_use') {
      this.#ledger.answered += 1;
    } else {
      this.#ledger.noteWrong(`${status} ${codeOf(answer)}`);
      ok(status === 409 || status === 503, String(status));
    }
    return answer;
  }
}

function codeOfRefusal(answer: HttpResponse): string | null {
  return answer.status === 409 ? codeOf(answer) : null;
}

/**
 * Lets 16 callers per node use all features of an authority until `meanwhile` has ended and each caller has
 * its last response. Returns the ledger of the responses.
 */
export async function callersDuring(
  name: string,
  nodes: Nodes,
  meanwhile: (ledger: Ledger) => Promise<void>,
): Promise<Ledger> {
  await openShop(nodes, name);
  const ledger = new Ledger(name);
  let isOver = false;
  const end = (): void => {
    isOver = true;
  };
  const callers = Array.from(
    { length: callersPerNode * nodes.all.length },
    (_, number) => new Caller(nodes.all, ledger, number),
  );
  const working = Promise.all(callers.map((caller) => caller.work(() => !isOver))).finally(end);
  const watching = watchLimit(nodes, ledger, () => isOver);
  await Promise.race([meanwhile(ledger).finally(end), working, watching]);
  await Promise.all([working, watching]);
  return ledger;
}

/** Resolves after `count` more final responses, so that earlier disturbances are over. */
export async function progress(ledger: Ledger, count = 200): Promise<void> {
  const goal = ledger.answered + count;
  await eventually(() => ledger.answered >= goal);
}

/** Checks that the coupon is never redeemed more often than its limit. */
async function watchLimit({ database }: Nodes, ledger: Ledger, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    // The database server may be down.
    const count = await redemptionsOf(ledger, database).catch(() => 0);
    ok(count <= redemptionLimit);
    await sleep(againMs);
  }
}
